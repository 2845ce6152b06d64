/** A timestamp as Kubernetes writes it: whole seconds, in UTC. */
export const iso = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
/** A time with microseconds, as Leases and Events have it. */
export const microTime = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
