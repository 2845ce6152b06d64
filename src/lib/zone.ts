/**
 * Time zones by their IANA names, from the tables that come with the runtime.
 * A wall time is what a clock on the wall shows, written as the milliseconds since 1970 at which UTC shows the same.
 */

export interface Zone {
  readonly name: string;
  /** How far its clocks are ahead of UTC at a moment, in milliseconds. */
  readonly offsetAt: (time: number) => number;
}

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** There are fewer, but each can be written in any mixture of large and small letters, and tenants write them. */
const MOST_KEPT = 500;
const zones = new Map<string, Zone>();

/** Offsets such as +02:00 are no zones: they have no summer. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    zoneOf(name);
    return true;
  } catch {
    return false;
  }
}

/** Kept, because making a formatter takes longer than all that is asked of it. Throws when there is no such zone. */
export function zoneOf(name: string): Zone {
  const known = zones.get(name);
  if (known) return known;
  const zone = { name, offsetAt: offsets(name) };
  if (zones.size >= MOST_KEPT) zones.clear();
  zones.set(name, zone);
  return zone;
}

function offsets(timeZone: string): (time: number) => number {
  if (timeZone === 'UTC') return () => 0;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (time) => {
    const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
    for (const { type, value } of format.formatToParts(time)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1000) * 1000;
  };
}

/** Days of the calendar as midnights on the wall, from the one before (or after) that of `time`, numbered from 0. */
export function* daysFrom(
  zone: Zone,
  time: number,
  direction: 1 | -1,
  count: number,
): Generator<readonly [number, number]> {
  if (!Number.isFinite(new Date(time).valueOf())) return;
  const today = Math.floor((time + zone.offsetAt(time)) / DAY_MS) * DAY_MS;
  for (let i = 0; i < count; i++) {
    const day = today + direction * (i - 1) * DAY_MS;
    // One more on both sides of a day is asked for its offset: at the end of time there is none.
    if (!Number.isFinite(new Date(day + 2 * direction * DAY_MS).valueOf())) return;
    yield [i, day];
  }
}

/** What clocks are ahead by on the whole day of the calendar; `undefined`: they are changed on it, or on one beside it. */
export function steadyOffset(zone: Zone, day: number): number | undefined {
  const [before, after] = around(zone, day);
  return before === after ? before : undefined;
}

/** A change has happened or not by these moments, wherever in the day it is: zones are at most 14 hours from UTC. */
const around = (zone: Zone, day: number): readonly [number, number] => [
  zone.offsetAt(day - DAY_MS),
  zone.offsetAt(day + 2 * DAY_MS),
];

/**
 * The moments at which a clock shows these times of one day, in order and each once. A time that is skipped is the moment of the
 * change; of a time that comes twice, the first, or `both` (and then a skipped one is none).
 */
export function instantsOf(zone: Zone, day: number, walls: readonly number[], how: 'once' | 'both'): readonly number[] {
  const [before, after] = around(zone, day);
  const change = changeBetween(zone, day - DAY_MS, day + 2 * DAY_MS, before);
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

/** The first moment that does not have the offset any more. Changes are at full minutes. */
function changeBetween(zone: Zone, from: number, to: number, offset: number): number {
  let [low, high] = [Math.floor(from / MINUTE_MS), Math.ceil(to / MINUTE_MS)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetAt(middle * MINUTE_MS) === offset) low = middle;
    else high = middle;
  }
  return high * MINUTE_MS;
}
