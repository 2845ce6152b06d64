/** Measured quantities: taken several times, told by their median and range. */

export type Unit = 'ms' | 'µs' | 'kB' | 'MiB' | 'MiB/s' | '%' | 'times' | 'count';

export interface Figure {
  readonly what: string;
  readonly unit: Unit;
  readonly median: number;
  readonly least: number;
  readonly most: number;
  readonly runs: number;
}

/** Ratios keep two decimals, small quantities one, all else is told in whole units. */
const precision = (unit: Unit): number => (unit === 'times' ? 100 : unit === 'kB' || unit === '%' ? 10 : 1);

export function summarise(what: string, samples: readonly number[], unit: Unit = 'ms'): Figure {
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
  };
}

/** Runs the work once to warm up and then as often as asked. */
export async function measureTimes(what: string, runs: number, work: () => Promise<unknown>): Promise<Figure> {
  const samples: number[] = [];
  for (let round = 0; round <= runs; round++) {
    const started = performance.now();
    await work();
    if (round > 0) samples.push(performance.now() - started);
  }
  return summarise(what, samples);
}

export function table(figures: readonly Figure[]): string {
  const head = ['what', 'median', 'least', 'most', 'runs'];
  const rows = figures.map((figure) => [
    figure.what,
    ...[figure.median, figure.least, figure.most].map((value) =>
      figure.unit === 'count' ? String(value) : `${value} ${figure.unit}`,
    ),
    String(figure.runs),
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ');
  return [head, ...rows].map((row) => line(row).trimEnd()).join('\n');
}
