/** The delay after the n-th failure in a row. */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Doubles up to the limit; half of it is random, so that many clients do not retry at the same time. `random` is in [0, 1). */
export const backoffMs = (failures: number, random: number, { firstMs, maxMs }: BackoffOptions): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30)) * (0.5 + random / 2);

/** The interval for polling something that started `elapsedMs` ago: short at first, longer later. */
export const probeMs = (elapsedMs: number, { firstMs, maxMs }: BackoffOptions): number =>
  Math.round(Math.min(maxMs, Math.max(firstMs, elapsedMs / 4)));
