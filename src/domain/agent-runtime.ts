/**
 * How Node runs an agent, in place of what the operator's image says for the operator: pieces of a database are garbage as
 * soon as they are sent, and more threads and a smaller space for young objects keep less of it. Measured with 500 MiB to S3
 * by `./dev bench backup`.
 */
export const AGENT_RUNTIME = [
  { name: 'NODE_OPTIONS', value: '--use-openssl-ca --max-semi-space-size=1' },
  { name: 'MALLOC_ARENA_MAX', value: '1' },
] as const;
