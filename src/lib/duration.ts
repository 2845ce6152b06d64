/** Durations as Go writes them, of hours, minutes and seconds: `2160h`, `1h30m`. */

const PART_MS = { h: 3_600_000, m: 60_000, s: 1_000 } as const;

/** Longer than the API accepts: parsing 1 MiB takes 150 ms. */
const MAX_LENGTH = 64;

/** In milliseconds; `undefined` when the text is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (text.length > MAX_LENGTH || !/^(\d+[hms])+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, amount = '', unit = 's'] of text.matchAll(/(\d+)([hms])/g))
    sum += Number(amount) * PART_MS[unit as keyof typeof PART_MS];
  return sum;
}
