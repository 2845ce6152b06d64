/** Durations as Go writes them, of hours, minutes and seconds: `2160h`, `1h30m`. */

const PART_MS = { h: 3_600_000, m: 60_000, s: 1_000 } as const;

/** In milliseconds; `undefined` when it is none. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+[hms])+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, amount = '', unit = 's'] of text.matchAll(/(\d+)([hms])/g))
    sum += Number(amount) * PART_MS[unit as keyof typeof PART_MS];
  return sum;
}
