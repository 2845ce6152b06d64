/** When the condition QuotaPressure is reported, and that it changes in steps. */
import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { MI } from '../../../test/support/builders/defrags.ts';
import { down, up, world } from '../../../test/support/builders/members.ts';
import type { Condition } from '../../api/conditions.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import { SpaceTrends } from './observe-space-trend.ts';
import type { Gathered } from './observed.ts';
import { coarseHours, QUOTA_PRESSURE } from './quota-pressure.ts';

const QUOTA = 1_000 * MI;
const HOUR = 3_600_000;

interface Used {
  readonly percent: number;
  /** Percent of the quota per hour; absent: not known yet. */
  readonly growth?: number;
  readonly before?: Condition;
  readonly silent?: boolean;
}
function used({ percent, growth, before, silent = false }: Used): Gathered {
  const options = { quotaBackendBytes: QUOTA };
  const is = { ...(silent ? down : up), spec: { options } };
  const o = world([is, is, is], { spec: { options }, status: before ? { conditions: [before] } : {} });
  const members = o.members.map((m, i) =>
    m.self ? { ...m, self: { ...m.self, databaseBytesInUse: ((percent - (i === 1 ? 0 : 3)) * QUOTA) / 100 } } : m,
  );
  const spaceTrend = growth === undefined ? undefined : { bytesPerHour: (growth * QUOTA) / 100, overMs: HOUR };
  return { ...o, members, ...(spaceTrend && { spaceTrend }) };
}
const pressure = (o: Gathered) => findCondition(decide(o).status.conditions, QUOTA_PRESSURE);
const said = (o: Gathered): string => {
  const found = pressure(o);
  const until = /refuses writes (in [a-z0-9 ]+)/.exec(found?.message ?? '')?.[1];
  return [found?.reason ?? 'none', ...(until === undefined ? [] : [until])].join(' ');
};
const reported = (reason: string, until = ''): Condition =>
  condition(QUOTA_PRESSURE, 'True', reason, `x; at the present rate etcd refuses writes ${until}. y`);

test.each<[string, Used, string]>([
  ['a small database, however it grows', { percent: 49, growth: 40 }, 'none'],
  ['one that grows slowly', { percent: 60, growth: 1 }, 'none'],
  ['one that does not grow', { percent: 79, growth: 0 }, 'none'],
  ['one that will be full within a day', { percent: 60, growth: 2 }, 'FillsUp in about 12 hours'],
  ['one that will be full within two hours', { percent: 60, growth: 25 }, 'FillsUp in about 1 hours'],
  ['one that is full in a moment', { percent: 75, growth: 50 }, 'FillsUp in less than an hour'],
  ['one that is nearly full', { percent: 80, growth: -1 }, 'NearlyFull'],
  ['one that is nearly full and grows', { percent: 80, growth: 4 }, 'NearlyFull in about 4 hours'],
  ['one that is nearly full, right after the start of the operator', { percent: 80 }, 'NearlyFull'],
  [
    'a forecast that was made before a restart stays until there is another one',
    { percent: 60, before: reported('FillsUp', 'in about 8 hours') },
    'FillsUp in about 8 hours',
  ],
  ['and goes when little is used', { percent: 40, before: reported('FillsUp', 'in about 8 hours') }, 'none'],
  ['it stays while no member responds', { percent: 60, silent: true, before: reported('NearlyFull') }, 'NearlyFull'],
  ['it does not go at once', { percent: 76, growth: 0, before: reported('NearlyFull') }, 'NearlyFull'],
  ['but then', { percent: 74, growth: 0, before: reported('NearlyFull') }, 'none'],
  [
    'nor does a forecast',
    { percent: 60, growth: 1.2, before: reported('FillsUp', 'in about 24 hours') },
    'FillsUp in about 24 hours',
  ],
])('%s', (_sentence, is, expected) => {
  expect(said(used(is))).toBe(expected);
});

test('the message proposes a quota, and a volume that has room for it', () => {
  expect(pressure(used({ percent: 90, growth: 1 }))?.message).toMatch(
    /^keys and history take more than 80 % of the quota of 1000.0 MiB; at the present rate .* Keep less history .*raise options.quotaBackendBytes to \d+ \(\d+Mi\), and storage.size to at least \d+Mi$/,
  );
});

test.each([
  [30, undefined, 24],
  [23, undefined, 12],
  [7, 8, 8],
  [5.9, 8, 4],
  [14, 8, 8],
  [16, 8, 12],
  [0.9, 1, 1],
  [0.5, 1, 0],
  [1.2, 0, 0],
])('%d hours, after a forecast of %d, are %d', (hours, before, expected) => {
  expect(coarseHours(hours, before)).toBe(expected);
});

describe('the trend', () => {
  const members = (bytes: number) =>
    world([up]).members.map((m) => (m.self ? { ...m, self: { ...m.self, databaseBytesInUse: bytes } } : m));
  const MINUTE = 60_000;

  test('is known after half an hour, and is that of the last six hours', () => {
    const trends = new SpaceTrends();
    const known: (number | undefined)[] = [];
    for (let minute = 0; minute <= 600; minute += 5)
      known.push(
        trends.note('ns/db', NOW + minute * MINUTE, members(minute < 240 ? 0 : (minute - 240) * MI))?.bytesPerHour,
      );
    expect(known.findIndex((each) => each !== undefined)).toBe(6);
    expect(known.at(-1)).toBeCloseTo(60 * MI, -3);
    trends.forget('ns/db');
    expect(trends.note('ns/db', NOW + 601 * MINUTE, members(1))).toBeUndefined();
  });

  test('starts again after a clock that was ahead, and has no gaps filled with guesses', () => {
    const trends = new SpaceTrends();
    trends.note('ns/db', NOW + 24 * HOUR, members(5));
    expect(trends.note('ns/db', NOW, members(1))).toBeUndefined();
    expect(trends.note('ns/db', NOW + HOUR, [])).toBeUndefined();
    expect(trends.note('ns/db', NOW + HOUR, members(61))?.bytesPerHour).toBeCloseTo(60);
  });
});
