import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Cron, lastUntil, nextAfter, parseCron } from './cron.ts';

const cron = (text: string, zone?: string): Cron => {
  const parsed = parseCron(text, zone);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.cron;
};
const ms = (iso: string): number => Date.parse(iso);
const iso = (time: number | undefined): string => (time === undefined ? 'never' : new Date(time).toISOString());

/** The next few moments, as a calendar would show them. */
const coming = (text: string, zone: string, from: string, count: number): readonly string[] => {
  const times: string[] = [];
  for (let at = nextAfter(cron(text, zone), ms(from)); at !== undefined && times.length < count; ) {
    times.push(iso(at).slice(0, 16));
    at = nextAfter(cron(text, zone), at);
  }
  return times;
};

test('a schedule of the maximum length is parsed', () => {
  expect(parseCron('0 0 * * *'.padEnd(1024)).ok).toBe(true);
});

describe('the next time', () => {
  test.each([
    ['*/15 * * * *', '2026-03-01T10:00:00Z', '2026-03-01T10:15'],
    ['*/15 * * * *', '2026-03-01T10:14:59.999Z', '2026-03-01T10:15'],
    ['*/15 * * * *', '2026-03-01T10:46:00Z', '2026-03-01T11:00'],
    ['5/20 * * * *', '2026-03-01T10:26:00Z', '2026-03-01T10:45'],
    ['0 3 * * *', '2026-12-31T03:00:00Z', '2027-01-01T03:00'],
    ['0 0 29 2 *', '2096-03-01T00:00:00Z', '2104-02-29T00:00'],
    ['0 0 31 * ?', '2026-01-31T00:00:00Z', '2026-03-31T00:00'],
    ['30 6 * * MON-fri', '2026-03-06T07:00:00Z', '2026-03-09T06:30'],
    ['30 6 * jan,MAR 7', '2026-01-31T00:00:00Z', '2026-03-01T06:30'],
    ['0 0 * * 5-7', '2026-03-06T00:00:00Z', '2026-03-07T00:00'],
    ['0 0 * * 6/1', '2026-03-07T00:00:00Z', '2026-03-14T00:00'],
    ['0 0 * * 0-7/7', '2026-03-01T00:00:00Z', '2026-03-08T00:00'],
    ['@hourly', '2026-03-01T10:00:00Z', '2026-03-01T11:00'],
    ['@Daily', '2026-03-01T10:00:00Z', '2026-03-02T00:00'],
    ['@midnight', '2026-03-01T10:00:00Z', '2026-03-02T00:00'],
    ['@weekly', '2026-03-01T10:00:00Z', '2026-03-08T00:00'],
    ['@monthly', '2026-03-01T10:00:00Z', '2026-04-01T00:00'],
    ['@yearly', '2026-03-01T10:00:00Z', '2027-01-01T00:00'],
    ['@annually', '2026-03-01T10:00:00Z', '2027-01-01T00:00'],
    [' 0   4\t* * * ', '2026-03-01T10:00:00Z', '2026-03-02T04:00'],
    ['CRON_TZ=Asia/Tokyo 0 4 * * *', '2026-03-01T10:00:00Z', '2026-03-01T19:00'],
    ['TZ=Asia/Kolkata 0 4 * * *', '2026-03-01T10:00:00Z', '2026-03-01T22:30'],
    ['TZ=Pacific/Kiritimati 0 0 1 * *', '2026-03-01T00:00:00Z', '2026-03-31T10:00'],
    ['TZ=Pacific/Pago_Pago 0 0 1 * *', '2026-03-01T00:00:00Z', '2026-03-01T11:00'],
  ])('%s after %s is %s', (text, from, at) => {
    expect(iso(nextAfter(cron(text), ms(from))).slice(0, 16)).toBe(at);
  });

  test('a day of the month and a day of the week are alternatives, unless one of them is a star', () => {
    const from = '2026-03-01T00:00:00Z';
    expect(coming('0 0 13 * 5', 'UTC', from, 4)).toEqual([
      '2026-03-06T00:00',
      '2026-03-13T00:00',
      '2026-03-20T00:00',
      '2026-03-27T00:00',
    ]);
    expect(coming('0 0 13 * *', 'UTC', from, 2)).toEqual(['2026-03-13T00:00', '2026-04-13T00:00']);
    expect(coming('0 0 * * 5', 'UTC', from, 2)).toEqual(['2026-03-06T00:00', '2026-03-13T00:00']);
    // Every second day is no star: as in a Kubernetes CronJob.
    expect(coming('0 0 */20 * 5', 'UTC', '2026-03-20T12:00:00Z', 3)).toEqual([
      '2026-03-21T00:00',
      '2026-03-27T00:00',
      '2026-04-01T00:00',
    ]);
  });

  test('a date that does not exist is still due by its weekday', () => {
    expect(coming('0 0 30 2 1', 'UTC', '2026-02-01T00:00:00Z', 1)).toEqual(['2026-02-02T00:00']);
  });
});

test.each([
  ['0 3 * * *', '2026-03-01T03:00:00Z', '2026-03-01T03:00'],
  ['0 3 * * *', '2026-03-01T02:59:59.999Z', '2026-02-28T03:00'],
  ['0 0 29 2 *', '2104-02-28T00:00:00Z', '2096-02-29T00:00'],
  ['TZ=America/New_York 30 1 * * *', '2026-11-01T06:45:00Z', '2026-11-01T05:30'],
])('%s was last due, at %s, at %s', (text, until, at) => {
  expect(iso(lastUntil(cron(text), ms(until))).slice(0, 16)).toBe(at);
});

describe('at daylight saving changes', () => {
  test.each([
    // Berlin: 02:00 to 03:00 on 29 March 2026 is skipped, 02:00 to 03:00 on 25 October comes twice.
    [
      'a time that is skipped is due at the change',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-03-28T12:00:00Z',
      ['2026-03-29T01:00', '2026-03-30T00:30'],
    ],
    [
      'several that are skipped are due once',
      '*/10 2 * * *',
      'Europe/Berlin',
      '2026-03-29T00:00:00Z',
      ['2026-03-29T01:00', '2026-03-30T00:00'],
    ],
    [
      'a skipped one that meets another is due once',
      '0 2,3 * * *',
      'Europe/Berlin',
      '2026-03-29T00:00:00Z',
      ['2026-03-29T01:00', '2026-03-30T00:00'],
    ],
    [
      'a time that comes twice is due at the first',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-24T12:00:00Z',
      ['2026-10-25T00:30', '2026-10-26T01:30'],
    ],
    [
      'and not again when asked between the two',
      '30 2 * * *',
      'Europe/Berlin',
      '2026-10-25T01:10:00Z',
      ['2026-10-26T01:30'],
    ],
    [
      'every hour is every hour, also when it comes twice',
      '30 * * * *',
      'Europe/Berlin',
      '2026-10-24T23:45:00Z',
      ['2026-10-25T00:30', '2026-10-25T01:30', '2026-10-25T02:30'],
    ],
    [
      'every hour has nothing to make up for',
      '30 * * * *',
      'Europe/Berlin',
      '2026-03-29T00:00:00Z',
      ['2026-03-29T00:30', '2026-03-29T01:30'],
    ],
    [
      'half an hour',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T12:00:00Z',
      ['2026-10-03T15:30', '2026-10-04T15:15'],
    ],
    [
      'midnight is skipped',
      '0 0 * * *',
      'Africa/Cairo',
      '2026-04-23T12:00:00Z',
      ['2026-04-23T22:00', '2026-04-24T21:00'],
    ],
    [
      'a day is skipped',
      '0 12 * * *',
      'Pacific/Apia',
      '2011-12-29T00:00:00Z',
      ['2011-12-29T22:00', '2011-12-30T10:00', '2011-12-30T22:00'],
    ],
    [
      'back across midnight',
      '*/30 * * * *',
      'America/St_Johns',
      '2010-11-07T02:00:00Z',
      ['2010-11-07T02:30', '2010-11-07T03:00', '2010-11-07T03:30', '2010-11-07T04:00'],
    ],
  ] as const)('%s', (_name, text, zone, from, times) => {
    expect(coming(text, zone, from, times.length)).toEqual(times);
  });
});

test.each([
  ['', 'five fields are needed'],
  ['* * * *', 'five fields are needed'],
  ['* * * * * *', 'five fields are needed'],
  ['60 * * * *', 'minute "60" is not between 0 and 59'],
  ['* 24 * * *', 'hour "24" is not between 0 and 23'],
  ['* * 0 * *', 'day of the month "0" is not between 1 and 31'],
  ['* * * 13 *', 'month "13" is not between 1 and 12'],
  ['* * * * 8', 'day of the week "8" is not between 0 and 6'],
  ['* * * * funday', 'day of the week "funday" is not between'],
  ['mon * * * *', 'minute "mon" is not between'],
  ['5-1 * * * *', 'minute "5-1" ends before it starts'],
  ['5-99 * * * *', 'minute "5-99" is not between 0 and 59'],
  ['x-5 * * * *', 'minute "x-5" is not between 0 and 59'],
  ['0 0 * * *'.padEnd(1025), 'it has 1025 characters, more than 1024'],
  ['*/0 * * * *', 'minute "*/0" has a step of 0'],
  ['*-5 * * * *', 'minute "*-5" is invalid'],
  ['1,,2 * * * *', 'minute "" is invalid'],
  ['-1 * * * *', 'minute "-1" is invalid'],
  ['1.5 * * * *', 'minute "1.5" is not between'],
  ['*/99999 * * * *', 'is invalid'],
  ['@every 5m', 'five fields are needed'],
  ['@reboot', '"@reboot" is unknown'],
  ['@constructor', '"@constructor" is unknown'],
  ['0 0 30 2 *', 'it is never due'],
  ['0 0 31 4,6,9,11 ?', 'it is never due'],
  ['TZ=Mars/Olympus 0 0 * * *', '"Mars/Olympus" is not a time zone'],
  ['TZ= 0 0 * * *', '"" is not a time zone'],
  ['TZ=+02:00 0 0 * * *', '"+02:00" is not a time zone'],
  [`${'1,'.repeat(512)}1 * * * *`, 'it has 1033 characters, more than 1024'],
])('%j is refused: %s', (text, message) => {
  expect(parseCron(text)).toEqual({ ok: false, message: expect.stringContaining(message) });
});

test('a time zone that is given twice is refused', () => {
  expect(parseCron('CRON_TZ=Asia/Tokyo 0 0 * * *', 'UTC')).toEqual({
    ok: false,
    message: 'the time zone is given twice, as Asia/Tokyo in the schedule and as UTC beside it: remove one',
  });
  expect(parseCron('0 0 * * *', 'Local').ok).toBe(false);
});

test('the search ends at the end of the range of Date', () => {
  const last = 8.64e15;
  expect(nextAfter(cron('0 0 1 1 *'), last)).toBeUndefined();
  expect(nextAfter(cron('0 0 1 1 *'), Number.NaN)).toBeUndefined();
  expect(lastUntil(cron('0 0 1 1 *'), -last)).toBeUndefined();
});

const anyOf = (min: number, max: number): fc.Arbitrary<string> => {
  const number = fc.integer({ min, max });
  const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const part = fc.oneof(
    fc.constant('*'),
    number.map(String),
    range,
    fc.tuple(fc.oneof(fc.constant('*'), range), fc.integer({ min: 1, max: 20 })).map(([r, s]) => `${r}/${s}`),
  );
  return fc.array(part, { minLength: 1, maxLength: 2 }).map((parts) => parts.join(','));
};
const schedule = fc
  .tuple(anyOf(0, 59), anyOf(0, 23), anyOf(1, 31), anyOf(1, 12), anyOf(0, 7))
  .map((fields) => fields.join(' '))
  .filter((text) => parseCron(text).ok);
const zone = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'America/Sao_Paulo',
);
const moment = fc.integer({ min: ms('1990-01-01'), max: ms('2100-01-01') });

describe('for any schedule, zone and moment', () => {
  test('nextAfter is later, lastUntil is not, each is found from the other, and nothing is between them', () => {
    fc.assert(
      fc.property(schedule, zone, moment, (text, tz, at) => {
        const parsed = cron(text, tz);
        const [next, last] = [nextAfter(parsed, at), lastUntil(parsed, at)];
        if (next === undefined || last === undefined) throw new Error('never');
        expect(next).toBeGreaterThan(at);
        expect(last).toBeLessThanOrEqual(at);
        expect(next % 60_000).toBe(0);
        expect(iso(lastUntil(parsed, next))).toBe(iso(next));
        expect(iso(lastUntil(parsed, next - 1))).toBe(iso(last));
        expect(iso(nextAfter(parsed, last))).toBe(iso(next));
        expect(iso(nextAfter(parsed, last - 1))).toBe(iso(last));
      }),
      { numRuns: 300 },
    );
  });

  test('a later time has a later next time', () => {
    fc.assert(
      fc.property(schedule, zone, moment, fc.nat(10 * 86_400_000), (text, tz, at, later) => {
        const parsed = cron(text, tz);
        expect(nextAfter(parsed, at)).toBeLessThanOrEqual(nextAfter(parsed, at + later) ?? 0);
        expect(lastUntil(parsed, at)).toBeLessThanOrEqual(lastUntil(parsed, at + later) ?? 0);
      }),
      { numRuns: 300 },
    );
  });

  // A second implementation, minute by minute, around daylight saving changes.
  const changes = [
    ['Europe/Berlin', '2026-03-29T01:00Z'],
    ['Europe/Berlin', '2026-10-25T01:00Z'],
    ['America/St_Johns', '2010-11-07T02:31Z'],
    ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
    ['Africa/Cairo', '2026-04-23T22:00Z'],
    ['Africa/Cairo', '2026-10-29T21:00Z'],
    ['Pacific/Apia', '2011-12-30T10:00Z'],
  ] as const;

  const minute = 60_000;
  /** The wall times in the hours around the change, minute by minute. */
  const shownAround = ([tz, change]: readonly [string, string]): readonly (readonly [number, number])[] => {
    const clock = new Intl.DateTimeFormat('sv-SE', { timeZone: tz, dateStyle: 'short', timeStyle: 'short' });
    const shown = (at: number): number => ms(`${clock.format(at).replace(' ', 'T')}Z`);
    return Array.from({ length: 450 }, (_, i) => ms(change) + (i - 150) * minute).map((at) => [at, shown(at)] as const);
  };
  const isDue = (c: Cron, wall: number): boolean => {
    const at = new Date(wall);
    const [byDay, byWeekday] = [c.days.has(at.getUTCDate()), c.weekdays.has(at.getUTCDay())];
    const time = c.minutes.includes(at.getUTCMinutes()) && c.hours.includes(at.getUTCHours());
    return time && c.months.has(at.getUTCMonth() + 1) && (c.anyDay ? byDay && byWeekday : byDay || byWeekday);
  };
  const dueAmong = (c: Cron, shown: readonly (readonly [number, number])[]): readonly string[] => {
    const real = c.hours.length === 24;
    const due: number[] = [];
    let latest = (shown[0]?.[1] ?? 0) - minute;
    for (const [at, wall] of shown) {
      // Every wall time that has not occurred before, skipped ones included.
      let news = real && isDue(c, wall);
      for (; latest < wall; latest += minute) news ||= !real && isDue(c, latest + minute);
      if (news) due.push(at);
    }
    return due.map(iso);
  };

  test('a search minute by minute around daylight saving changes finds the same', { timeout: 60_000 }, () => {
    const around = changes.map((change) => [change[0], shownAround(change)] as const);
    fc.assert(
      fc.property(schedule, fc.constantFrom(...around), (text, [tz, shown]) => {
        const c = cron(text, tz);
        const [from, to] = [shown[0]?.[0] ?? 0, (shown.at(-1)?.[0] ?? 0) + minute];
        const found: string[] = [];
        for (let at = nextAfter(c, from - 1); at !== undefined && at < to; at = nextAfter(c, at)) found.push(iso(at));
        expect(found).toEqual(dueAmong(c, shown));
      }),
      { numRuns: 40 },
    );
  });
});
