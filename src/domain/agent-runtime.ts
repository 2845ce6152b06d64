/**
 * Node's settings for an agent, in place of those in the operator's image: chunks of a database are garbage as soon as they are
 * sent. With a semi-space of 1 MiB many outlive a scavenge, and their buffers are kept until the old space is collected; with 8
 * MiB or more, scavenges are too rare for those that zstd allocates. Measured with 300 MiB to S3, median of three: 1,480, 1,300
 * and 1,260 ms of processor time and 203, 150 and 153 MiB for 1, 4 and 8 MiB; compressed and encrypted 4,390, 3,200 and 4,900
 * ms and 169, 155 and 186 MiB. `./dev bench backup` measures the whole.
 */
export const AGENT_RUNTIME = [
  { name: 'NODE_OPTIONS', value: '--use-openssl-ca --max-semi-space-size=4' },
  { name: 'MALLOC_ARENA_MAX', value: '1' },
] as const;
