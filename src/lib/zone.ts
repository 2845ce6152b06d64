/**
 * Time zones by their IANA names. A wall time is what a clock on the wall shows, written as the milliseconds since 1970 at
 * which UTC shows the same.
 */

/** The name of an existing time zone. */
export type Zone = string;

const DAY_MS = 86_400_000;

const at = (zone: Zone, time: number): Temporal.ZonedDateTime =>
  Temporal.Instant.fromEpochMilliseconds(Math.floor(time)).toZonedDateTimeISO(zone); // it refuses fractions, which a steered clock has

/** The longest name has 32 characters. */
const MAX_NAME = 64;

/** Offsets such as +02:00 are not accepted: they have no daylight saving time. */
export function isZone(name: string): boolean {
  if (name.length > MAX_NAME || !/^[A-Za-z]/.test(name)) return false;
  try {
    at(name, 0);
    return true;
  } catch {
    return false;
  }
}

/** The UTC offset of a zone at a time, in milliseconds. */
export const offsetAt = (zone: Zone, time: number): number => at(zone, time).offsetNanoseconds / 1e6;

/**
 * Calendar days by their number, as midnights in wall time: 0 is the day before (or after) that of `time`. The offsets of one more
 * day on both sides are read: there are none at the end of the range of Date, and no days.
 */
export function daysFrom(zone: Zone, time: number, direction: 1 | -1): (i: number) => number | undefined {
  if (!Number.isFinite(new Date(time).valueOf())) return () => undefined;
  const today = Math.floor((time + offsetAt(zone, time)) / DAY_MS) * DAY_MS;
  return (i) => {
    const day = today + direction * (i - 1) * DAY_MS;
    return Number.isFinite(new Date(day + 2 * direction * DAY_MS).valueOf()) ? day : undefined;
  };
}

/** The UTC offset on a whole calendar day; `undefined` when it changes on that day or on an adjacent one. */
export function steadyOffset(zone: Zone, day: number): number | undefined {
  const [before, after] = around(zone, day);
  return before === after ? before : undefined;
}

/** The offsets before and after any change on this day: zones are at most 14 hours from UTC. */
const around = (zone: Zone, day: number): readonly [number, number] => [
  offsetAt(zone, day - DAY_MS),
  offsetAt(zone, day + 2 * DAY_MS),
];

/**
 * The instants of these wall times of one day, sorted and without duplicates. A skipped time becomes the instant of the change;
 * of a repeated time the first counts, or `both` (and then a skipped one has none).
 */
export function instantsOf(zone: Zone, day: number, walls: readonly number[], how: 'once' | 'both'): readonly number[] {
  const [before, after] = around(zone, day);
  const change = at(zone, day - DAY_MS).getTimeZoneTransition('next')?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
  const moments = walls.flatMap((wall) => {
    const real = [
      ...(wall - before < change ? [wall - before] : []),
      ...(wall - after >= change ? [wall - after] : []),
    ];
    if (how === 'both') return real;
    return [real[0] ?? change];
  });
  return [...new Set(moments)].sort((a, b) => a - b);
}
