/**
 * Node's settings for an agent, in place of those in the operator's image: chunks of a database are garbage as soon as they are
 * sent, and more threads with a smaller semi-space keep less of it in memory. Measured with 500 MiB to S3 by
 * `./dev bench backup`.
 */
export const AGENT_RUNTIME = [
  { name: 'NODE_OPTIONS', value: '--use-openssl-ca --max-semi-space-size=1' },
  { name: 'MALLOC_ARENA_MAX', value: '1' },
] as const;
