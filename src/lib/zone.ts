/**
 * Time zones by their IANA names. A wall time is what a clock on the wall shows, written as the milliseconds since 1970 at
 * which UTC shows the same.
 */

/** The name of a zone that exists. */
export type Zone = string;

const DAY_MS = 86_400_000;

const at = (zone: Zone, time: number): Temporal.ZonedDateTime =>
  Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(zone);

/** The longest name has 32. */
const MAX_NAME = 64;

/** Offsets such as +02:00 are no zones: they have no summer. */
export function isZone(name: string): boolean {
  if (name.length > MAX_NAME || !/^[A-Za-z]/.test(name)) return false;
  try {
    at(name, 0);
    return true;
  } catch {
    return false;
  }
}

/** How far the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
export const offsetAt = (zone: Zone, time: number): number => at(zone, time).offsetNanoseconds / 1e6;

/** Days of the calendar as midnights on the wall, from the one before (or after) that of `time`, numbered from 0. */
export function* daysFrom(
  zone: Zone,
  time: number,
  direction: 1 | -1,
  count: number,
): Generator<readonly [number, number]> {
  if (!Number.isFinite(new Date(time).valueOf())) return;
  const today = Math.floor((time + offsetAt(zone, time)) / DAY_MS) * DAY_MS;
  for (let i = 0; i < count; i++) {
    const day = today + direction * (i - 1) * DAY_MS;
    // One more on both sides of a day is asked for its offset: at the end of time there is none.
    if (!Number.isFinite(new Date(day + 2 * direction * DAY_MS).valueOf())) return;
    yield [i, day];
  }
}

/** What clocks are ahead by on the whole day of the calendar; `undefined`: they change on it, or on one beside it. */
export function steadyOffset(zone: Zone, day: number): number | undefined {
  const [before, after] = around(zone, day);
  return before === after ? before : undefined;
}

/** A change has happened or not by these moments, wherever in the day it is: zones are at most 14 hours from UTC. */
const around = (zone: Zone, day: number): readonly [number, number] => [
  offsetAt(zone, day - DAY_MS),
  offsetAt(zone, day + 2 * DAY_MS),
];

/**
 * The moments at which a clock shows these times of one day, in order and each once. A time that is skipped is the moment of the
 * change; of a time that comes twice, the first, or `both` (and then a skipped one is none).
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
