/** A timestamp as Kubernetes writes it: whole seconds, in UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
