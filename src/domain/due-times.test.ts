import { expect, test } from 'vitest';
import { parseCron } from '../lib/cron.ts';
import { dueTimesOf, MAX_MISSED } from './due-times.ts';

const daily = { seed: 'a', creationTimestamp: '2026-03-01T00:00:00Z', spreadSeconds: 0 };

test('missed times of a year of every minute are counted up to a limit: each reconcile would take seconds', () => {
  const table = parseCron('* * * * *');
  if (!table.ok) throw new Error(table.message);
  const now = Date.parse('2027-03-01T00:00:30Z');
  expect(dueTimesOf(table.cron, daily, { now, lastStarted: undefined, announced: 0 })).toEqual({
    due: { slot: now - 30_000, at: now - 30_000 },
    next: { slot: now + 30_000, at: now + 30_000 },
    missed: MAX_MISSED,
  });
});

test('a thousand clusters of one schedule are spread evenly over its window, each at the same moment every time it is asked', () => {
  const table = parseCron('0 3 * * *');
  if (!table.ok) throw new Error(table.message);
  const now = Date.parse('2026-03-02T12:00:00Z');
  const startOf = (n: number): number => {
    const recurring = { ...daily, seed: `ns/db-${n}`, spreadSeconds: 3_600 };
    return dueTimesOf(table.cron, recurring, { now, lastStarted: undefined, announced: now }).due?.at ?? 0;
  };
  const minutes = Array.from({ length: 1_000 }, (_, n) =>
    Math.floor((startOf(n) - Date.parse('2026-03-02T03:00:00Z')) / 60_000),
  );
  const perMinute = Array.from({ length: 61 }, (_, minute) => minutes.filter((m) => m === minute).length);
  expect([Math.min(...minutes), Math.max(...minutes) <= 60, Math.max(...perMinute) < 40]).toEqual([0, true, true]);
  expect(startOf(7)).toBe(startOf(7));
});
