/** The straight line that is closest to measurements: least squares. */
export interface Sample {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly value: number;
}

/** The change per hour; `undefined` without two different times. */
export function slopePerHour(samples: readonly Sample[]): number | undefined {
  const count = samples.length;
  const mean = (of: (sample: Sample) => number): number => samples.reduce((sum, each) => sum + of(each), 0) / count;
  const [at, value] = [mean((each) => each.at), mean((each) => each.value)];
  const spread = samples.reduce((sum, each) => sum + (each.at - at) ** 2, 0);
  if (count === 0 || spread === 0) return undefined;
  const together = samples.reduce((sum, each) => sum + (each.at - at) * (each.value - value), 0);
  return (together / spread) * 3_600_000;
}
