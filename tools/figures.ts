/** Measured quantities: sampled several times, reported as median and range. */

export type Unit = 's' | 'ms' | 'µs' | 'kB' | 'MiB' | 'MiB/s' | '%' | 'times' | 'count';

export interface Figure {
  readonly what: string;
  readonly unit: Unit;
  readonly median: number;
  readonly least: number;
  readonly most: number;
  readonly runs: number;
  readonly goal?: Goal;
}

/** The limit of the median, and the figure of the operator that this one replaces, where it is known. */
export interface Goal {
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly go?: string;
}

/** Ratios keep two decimals, small quantities one, everything else is rounded to whole units. */
const precision = (unit: Unit): number => {
  if (unit === 'times' || unit === 's') return 100;
  return unit === 'kB' || unit === '%' ? 10 : 1;
};

export function summarise(what: string, samples: readonly number[], unit: Unit = 'ms', goal?: Goal): Figure {
  const scale = precision(unit);
  const rounded = (value: number): number => Math.round(value * scale) / scale;
  const sorted = samples.toSorted((a, b) => a - b).map(rounded);
  const middle = (sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0);
  return {
    what,
    unit,
    median: rounded(middle / 2),
    least: sorted[0] ?? 0,
    most: sorted.at(-1) ?? 0,
    runs: sorted.length,
    ...(goal && { goal }),
  };
}

/** Runs the work once to warm up and then the given number of times. */
export async function measureTimes(what: string, runs: number, work: () => Promise<unknown>): Promise<Figure> {
  const samples: number[] = [];
  for (let round = 0; round <= runs; round++) {
    const started = performance.now();
    await work();
    if (round > 0) samples.push(performance.now() - started);
  }
  return summarise(what, samples);
}

export const isMet = ({ median, goal }: Figure): boolean =>
  median <= (goal?.atMost ?? Number.POSITIVE_INFINITY) && median >= (goal?.atLeast ?? Number.NEGATIVE_INFINITY);

const amount = (value: number, unit: Unit): string => (unit === 'count' ? String(value) : `${value} ${unit}`);

/** The limit, whether it is met, and the other operator's figure. */
function verdict(figure: Figure): readonly string[] {
  const { goal, unit } = figure;
  const bounds = [
    ...(goal?.atMost === undefined ? [] : [`≤ ${amount(goal.atMost, unit)}`]),
    ...(goal?.atLeast === undefined ? [] : [`≥ ${amount(goal.atLeast, unit)}`]),
  ];
  return [bounds.join(', '), bounds.length === 0 ? '' : isMet(figure) ? 'ok' : 'NOT MET', goal?.go ?? ''];
}

export function table(figures: readonly Figure[]): string {
  const judged = figures.some(({ goal }) => goal !== undefined);
  const head = ['what', 'median', 'least', 'most', 'runs', ...(judged ? ['limit', '', 'Go operator'] : [])];
  const rows = figures.map((figure) => [
    figure.what,
    ...[figure.median, figure.least, figure.most].map((value) => amount(value, figure.unit)),
    String(figure.runs),
    ...(judged ? verdict(figure) : []),
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ');
  return [head, ...rows].map((row) => line(row).trimEnd()).join('\n');
}
