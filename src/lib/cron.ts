/**
 * Cron expressions with five fields, in a time zone. They mean what they mean in a Kubernetes CronJob, with two differences at
 * daylight saving changes, because a backup that is skipped or taken twice is a surprise:
 *
 * - a time that is skipped on that day is due once, at the moment of the change;
 * - a time that occurs twice on that day is due at the first of the two.
 *
 * A schedule of every hour follows real time instead: it is due in both of the repeated hours, and once per real hour otherwise.
 */
import { daysFrom, instantsOf, isZone, steadyOffset, type Zone } from './zone.ts';

export interface Cron {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** With a star in the day of the month or of the week, both must match; without one, either is enough. */
  readonly anyDay: boolean;
  readonly zone: Zone;
}

export type ParsedCron = { readonly ok: true; readonly cron: Cron } | { readonly ok: false; readonly message: string };

const MINUTE_MS = 60_000;
/** Longer than any valid expression. */
const MAX_LENGTH = 1024;
/** 29 February is the rarest day: from 2096 to 2104. */
const MAX_SEARCH_DAYS = 366 * 8 + 2;

const SHORTHANDS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Accepted beside the numbers; the first means `min`. */
  readonly names?: readonly string[];
  /** Means `min` too. */
  readonly alias?: number;
}

const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of the month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ') },
  { name: 'day of the week', min: 0, max: 6, alias: 7, names: 'sun mon tue wed thu fri sat'.split(' ') },
];

/** The time zone is UTC unless the text starts with `CRON_TZ=` or `TZ=`, or `timeZone` is given. */
export function parseCron(text: string, timeZone?: string): ParsedCron {
  const no = (message: string): ParsedCron => ({ ok: false, message });
  if (text.length > MAX_LENGTH) return no(`it has ${text.length} characters, more than ${MAX_LENGTH}`);
  const [, named, rest = ''] = /^\s*(?:(?:CRON_)?TZ=(\S*)\s+)?(.*)$/s.exec(text) ?? [];
  if (named !== undefined && timeZone !== undefined)
    return no(`the time zone is given twice, as ${named} in the schedule and as ${timeZone} beside it: remove one`);
  const zone = named ?? timeZone ?? 'UTC';
  if (!isZone(zone)) return no(`"${zone}" is not a time zone: use a name such as Europe/Berlin`);
  const words = rest.trim().split(/\s+/);
  const [first = ''] = words;
  const fields = words.length === 1 && first.startsWith('@') ? SHORTHANDS[first.toLowerCase()]?.split(' ') : words;
  if (!fields) return no(`"${first}" is unknown: use five fields, or one of ${Object.keys(SHORTHANDS).join(', ')}`);
  if (fields.length !== FIELDS.length)
    return no('five fields are needed: minute, hour, day of the month, month, day of the week');
  const sets: ReadonlySet<number>[] = [];
  for (const [i, field] of FIELDS.entries()) {
    const parsed = parseField(field, fields[i] ?? '');
    if (typeof parsed === 'string') return no(parsed);
    sets.push(parsed);
  }
  const [minutes, hours, days, months, weekdays] = sets as [Values, Values, Values, Values, Values];
  const isStar = (field: string | undefined): boolean => /(^|,)[*?](\/1)?(,|$)/.test(field ?? '');
  const anyDay = isStar(fields[2]) || isStar(fields[4]);
  const cron = { minutes: sorted(minutes), hours: sorted(hours), days, months, weekdays, anyDay, zone };
  return isNever(cron, isStar(fields[4])) ? no('it is never due: none of its months has that day') : { ok: true, cron };
}

type Values = ReadonlySet<number>;
const sorted = (values: Values): readonly number[] => [...values].sort((a, b) => a - b);

const MAX_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

const isNever = ({ months, days }: Pick<Cron, 'months' | 'days'>, anyWeekday: boolean): boolean =>
  anyWeekday && ![...months].some((month) => [...days].some((day) => day <= (MAX_DAYS[month - 1] ?? 0)));

/** The values of a field; an error message when it is invalid. */
function parseField(field: Field, text: string): Values | string {
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const range = parseRange(field, part);
    if (typeof range === 'string') return `${field.name} "${part}" ${range}`;
    for (let value = range.from; value <= range.to; value += range.step)
      values.add(value === field.alias ? field.min : value);
  }
  return values;
}

/** `*`, `5`, `1-5`, `mon-fri`, each optionally with `/2`; `5/2` continues to the maximum. */
function parseRange(
  field: Field,
  text: string,
): { readonly from: number; readonly to: number; readonly step: number } | string {
  const [, low = '', high, every] = /^([^-/]+)(?:-([^-/]+))?(?:\/(\d{1,4}))?$/.exec(text) ?? [];
  if (low === '') return 'is invalid: use *, 5, 1-5, */10 or a comma-separated list of these';
  const step = every === undefined ? 1 : Number(every);
  if (step === 0) return 'has a step of 0';
  if (low === '*' || low === '?') {
    if (high !== undefined) return 'is invalid: a range has a number at both ends';
    return { from: field.min, to: field.max, step };
  }
  const from = parseValue(field, low);
  const to = high === undefined ? (every === undefined ? from : field.max) : parseValue(field, high);
  if (from === undefined || to === undefined) return `is not between ${field.min} and ${field.max}`;
  return from > to ? 'ends before it starts' : { from, to, step };
}

function parseValue(field: Field, text: string): number | undefined {
  const named = field.names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return named + field.min;
  if (!/^\d{1,2}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= field.min && value <= (field.alias ?? field.max) ? value : undefined;
}

/** The first time after `time` at which it is due; `undefined` beyond the range of Date. */
export const nextAfter = (cron: Cron, time: number): number | undefined => search(cron, time, 1);

/** The last time up to and including `time` at which it was due. */
export const lastUntil = (cron: Cron, time: number): number | undefined => search(cron, time, -1);

/** Days overlap where clocks are put back across midnight: one more day is searched on both sides. */
function search(cron: Cron, time: number, direction: 1 | -1): number | undefined {
  const isBeyond = (at: number): boolean => (direction > 0 ? at > time : at <= time);
  const nearest = (a: number | undefined, b: number | undefined): number | undefined =>
    a === undefined || b === undefined ? (a ?? b) : direction > 0 ? Math.min(a, b) : Math.max(a, b);
  const dayOf = daysFrom(cron.zone, time, direction);
  let found: number | undefined;
  for (let i = 0; i < MAX_SEARCH_DAYS; i++) {
    const day = dayOf(i);
    if (day === undefined) return found;
    const best = nearest(found, isDay(cron, day) ? nearestOn(cron, day, direction, isBeyond) : undefined);
    if (found !== undefined && i > 1) return best;
    found = best;
    if (found === undefined) i += restOfMonth(cron, day, direction);
  }
  return found;
}

/** How many more days are in a month in which it is never due: day by day, 16 windows on 29 February took 120 ms of every reconcile. */
function restOfMonth({ months }: Cron, day: number, direction: 1 | -1): number {
  const date = new Date(day);
  const [month, inMonth] = [date.getUTCMonth(), date.getUTCDate()];
  if (months.has(month + 1)) return 0;
  return direction > 0 ? new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate() - inMonth : inMonth - 1;
}

function isDay(cron: Cron, day: number): boolean {
  const date = new Date(day);
  if (!cron.months.has(date.getUTCMonth() + 1)) return false;
  const [byDay, byWeekday] = [cron.days.has(date.getUTCDate()), cron.weekdays.has(date.getUTCDay())];
  return cron.anyDay ? byDay && byWeekday : byDay || byWeekday;
}

/** The nearest due time on a calendar day. Most days have no daylight saving change, and then whole hours are skipped. */
function nearestOn(
  { zone, hours, minutes }: Cron,
  day: number,
  direction: 1 | -1,
  isBeyond: (at: number) => boolean,
): number | undefined {
  const find = (values: readonly number[], fits: (value: number) => boolean): number | undefined =>
    direction > 0 ? values.find(fits) : values.findLast(fits);
  const wall = (hour: number, minute: number): number => day + (hour * 60 + minute) * MINUTE_MS;
  const offset = steadyOffset(zone, day);
  if (offset === undefined) {
    const walls = hours.flatMap((hour) => minutes.map((minute) => wall(hour, minute)));
    return find(instantsOf(zone, day, walls, hours.length === 24 ? 'both' : 'once'), isBeyond);
  }
  const farthest = (direction > 0 ? minutes.at(-1) : minutes.at(0)) ?? 0;
  const hour = find(hours, (each) => isBeyond(wall(each, farthest) - offset));
  const minute = hour === undefined ? undefined : find(minutes, (each) => isBeyond(wall(hour, each) - offset));
  return hour === undefined || minute === undefined ? undefined : wall(hour, minute) - offset;
}
