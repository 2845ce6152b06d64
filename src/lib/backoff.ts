/** How long to wait after the n-th failure in a row. */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** Doubles up to the limit; half of it is chance, so that many clients do not come back in step. `random` is in [0, 1). */
export const backoffMs = (failures: number, random: number, { firstMs, maxMs }: BackoffOptions): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(failures, 30)) * (0.5 + random / 2);

/** The pause before asking again something that has been on its way for `elapsedMs`: frequent at first, patient later. */
export const probeMs = (elapsedMs: number, { firstMs, maxMs }: BackoffOptions): number =>
  Math.round(Math.min(maxMs, Math.max(firstMs, elapsedMs / 4)));
