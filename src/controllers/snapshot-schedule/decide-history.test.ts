/** Which of its snapshots a schedule keeps. */
import { describe, expect, test } from 'vitest';
import { aRun, at, doing, FAILED, STORED, settled } from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';
import { trimHistory } from './rules/history.ts';

describe('the history', () => {
  const runs = ['01', '02', '03', '04', '05'].map((hour) => aRun(`${hour}:00:00`, hour === '02' ? FAILED : STORED));
  const recorded = (spec: Partial<EtcdSnapshotScheduleSpec>, more: Partial<Observed> = {}): Observed =>
    settled(at('05:30:00', spec, undefined, { runs, ...more }));

  test.each<[string, Observed, readonly string[]]>([
    ['keeps three of each', recorded({}), ['trimHistory', '-hourly-202603010100']],
    ['keeps as many as the limit', recorded({ successfulSnapshotsHistoryLimit: 4 }), ['waitForNext']],
    [
      'never deletes the last successful one',
      recorded({ successfulSnapshotsHistoryLimit: 0 }),
      ['trimHistory', '-hourly-202603010100', '-hourly-202603010300', '-hourly-202603010400'],
    ],
    [
      'counts failures separately',
      recorded({ successfulSnapshotsHistoryLimit: 9, failedSnapshotsHistoryLimit: 0 }),
      ['trimHistory', '-hourly-202603010200'],
    ],
    [
      'removes nothing that is not recorded',
      at('05:30:00', { successfulSnapshotsHistoryLimit: 0 }, undefined, { runs }),
      ['record'],
    ],
    [
      'does not delete twice',
      recorded({}, { runs: runs.map((run, i) => (i === 0 ? aRun('01:00:00', STORED, true) : run)) }),
      ['waitForNext'],
    ],
  ])('%s', (_name, world, expected) => {
    expect(doing(decide(world))).toEqual(expected);
  });

  test('what is not recorded is kept, also in another order of the rules', () => {
    const world = at('05:30:00', { successfulSnapshotsHistoryLimit: 0, failedSnapshotsHistoryLimit: 0 }, undefined, {
      runs,
    });
    expect(trimHistory(world)).toBeUndefined();
  });

  test('active snapshots are not part of the history', () => {
    const world = recorded(
      { successfulSnapshotsHistoryLimit: 9, failedSnapshotsHistoryLimit: 0 },
      { runs: [aRun('04:00:00', { phase: 'Started' }), aRun('05:00:00', STORED)] },
    );
    expect(doing(decide(world))).toEqual(['waitForNext']);
  });
});
