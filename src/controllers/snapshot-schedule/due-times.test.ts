import { expect, test } from 'vitest';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import { dueTimesOf, MAX_MISSED, timetable } from './due-times.ts';

test('missed times of a year of every minute are counted up to a limit: each reconcile would take seconds', () => {
  const schedule = aSchedule({ schedule: '* * * * *' });
  const table = timetable(schedule);
  if (!table.ok) throw new Error(table.message);
  const now = Date.parse('2027-03-01T00:00:30Z');
  expect(dueTimesOf(table.cron, schedule, { now, lastStarted: undefined, announced: 0 })).toEqual({
    due: { slot: now - 30_000, at: now - 30_000 },
    next: { slot: now + 30_000, at: now + 30_000 },
    missed: MAX_MISSED,
  });
});
