/** The status of a schedule: the next snapshot, why there is none, what was missed, and the last result. */
import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import {
  ARTIFACT,
  aRun,
  aSchedule,
  at,
  condition,
  doing,
  events,
  FAILED,
  STORED,
  scheduleWorld,
  settled,
  startedAt,
} from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshotScheduleSpec, EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';
import { statusOf } from './status.ts';

type Status = EtcdSnapshotScheduleStatus;

describe('the status reports', () => {
  test('the next one, and it is requeued exactly then', () => {
    const plan = decide(at('00:59:30'));
    expect(plan.status.nextScheduleTime).toBe('2026-03-01T01:00:00Z');
    expect(condition(plan, 'Scheduled')).toBe('True/Scheduled: the next snapshot starts at 2026-03-01T01:00:00Z');
    expect(plan.requeueAfterMs).toBe(30_000);
    expect(events(plan)).toEqual([]);
  });

  test('the requeue time is at most an hour: a clock may be set forward', () => {
    expect(decide(at('00:59:30', { schedule: '@yearly' })).requeueAfterMs).toBe(3_600_000);
    expect(decide(at('00:59:30', { suspend: true })).requeueAfterMs).toBe(3_600_000);
  });

  test.each<[string, Observed, string, readonly string[]]>([
    [
      'that the schedule is invalid',
      at('05:30:00', { schedule: '61 * * * *' }),
      'False/InvalidSchedule: spec.schedule is invalid, no snapshot is started: minute "61" is not between 0 and 59',
      ['Warning InvalidSchedule'],
    ],
    [
      'that it is suspended',
      at('05:30:00', { suspend: true }),
      'False/Suspended: spec.suspend is true: no snapshot is started',
      ['Normal Suspended'],
    ],
    [
      'that there is no cluster',
      at('05:30:00', {}, undefined, { cluster: undefined }),
      'False/ClusterNotFound: EtcdCluster db does not exist in this namespace: no snapshot is started',
      ['Warning ClusterNotFound'],
    ],
    [
      'that the cluster is paused',
      at('05:30:00', {}, undefined, { cluster: aCluster({ spec: { replicas: 0 } }) }),
      'False/ClusterParked: EtcdCluster db is paused (replicas 0): no snapshot is started',
      ['Warning ClusterParked'],
    ],
    [
      'that the name is taken',
      at('05:30:00', {}, undefined, { due: { is: 'foreign', owner: 'no controller' } }),
      'False/NameConflict: the snapshot of 2026-03-01T05:00:00Z cannot be created, because an EtcdSnapshot of its name belongs to no controller: the next one has another name',
      ['Warning NameConflict'],
    ],
    [
      'that it is refused',
      at('05:30:00', {}, undefined, { refusal: 'the API server refuses: quota' }),
      'False/Refused: no snapshot can be created: the API server refuses: quota',
      ['Warning Refused'],
    ],
  ])('%s', (_name, world, scheduled, events) => {
    const plan = decide(world);
    expect(condition(plan, 'Scheduled')).toBe(scheduled);
    expect(plan.events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(events);
    expect(plan.status.nextScheduleTime === undefined).toBe(
      scheduled.startsWith('False') && !/NameConflict|Refused/.test(scheduled),
    );
  });

  const announced: Status = {
    ...startedAt('01:00:00'),
    nextScheduleTime: '2026-03-01T02:00:00Z',
    conditions: [
      {
        type: 'Scheduled',
        status: 'True',
        reason: 'Scheduled',
        message: '',
        observedGeneration: 1,
        lastTransitionTime: '',
      },
    ],
  };
  test('what was missed, once', () => {
    const world = at('05:30:00', {}, announced);
    const plan = decide(world);
    expect(doing(plan)).toEqual(['startSnapshot', '+hourly-202603010500']);
    expect(events(plan)).toEqual([
      'Warning MissedSchedule: 3 snapshots were missed since 2026-03-01T02:00:00Z: only that of 2026-03-01T05:00:00Z is taken now',
    ]);
    const again = settled({ ...world, runs: [aRun('05:00:00')] });
    expect(events(decide(again))).toEqual([]);
  });

  test('what is past the deadline, once', () => {
    const world = at('05:30:00', { startingDeadlineSeconds: 60 }, announced);
    const plan = decide(world);
    expect(doing(plan)).toEqual(['waitForNext']);
    expect(events(plan)).toEqual([
      'Warning MissedSchedule: 4 snapshots were missed since 2026-03-01T02:00:00Z: startingDeadlineSeconds has passed',
    ]);
    expect(events(decide(settled(world)))).toEqual([]);
    expect(plan.status.nextScheduleTime).toBe('2026-03-01T06:00:00Z');
  });

  test.each<[string, Status, Partial<EtcdSnapshotScheduleSpec>]>([
    ['nothing, of one that came in time', { ...announced, nextScheduleTime: '2026-03-01T05:00:00Z' }, {}],
    [
      'nothing, of times before the schedule was edited',
      { ...announced, conditions: announced.conditions?.map((c) => ({ ...c, observedGeneration: 0 })) ?? [] },
      {},
    ],
    [
      'nothing, of times at which it was suspended',
      { ...announced, conditions: announced.conditions?.map((c) => ({ ...c, status: 'False' as const })) ?? [] },
      {},
    ],
  ])('%s', (_name, status, spec) => {
    const plan = decide(at('05:00:00', spec, status));
    expect([plan.rule, plan.events.filter(({ reason }) => reason === 'MissedSchedule')]).toEqual(['startSnapshot', []]);
  });

  test('missed times of a year of every minute are counted up to a limit', () => {
    const plan = decide(
      at(
        '05:30:00',
        { schedule: '* * * * *' },
        { ...announced, lastScheduleTime: '2025-03-01T00:00:00Z', nextScheduleTime: '2026-03-01T00:00:00Z' },
      ),
    );
    expect(events(plan)[0]).toContain('20 or more snapshots were missed');
  });

  test('the result of the last one', () => {
    const runs = [aRun('03:00:00', STORED), aRun('04:00:00', FAILED), aRun('05:00:00', FAILED)];
    const plan = decide(at('05:30:00', {}, undefined, { runs }));
    expect(plan.rule).toBe('record');
    expect(plan.latch).toEqual({
      lastScheduleTime: '2026-03-01T05:00:00Z',
      lastSuccessful: { name: 'hourly-202603010300', time: STORED.completionTime, artifact: ARTIFACT },
      successes: 1,
      lastFailed: {
        name: 'hourly-202603010500',
        time: FAILED.completionTime,
        reason: 'AccessDenied',
        message: 'the key is wrong',
      },
    });
    expect(condition(plan, 'SnapshotSucceeded')).toBe(
      'False/AccessDenied: hourly-202603010500 failed: the key is wrong',
    );
    expect(events(plan)).toContain('Warning SnapshotFailed: hourly-202603010500 failed: the key is wrong');
    const better = decide(settled(at('06:30:00', {}, undefined, { runs: [...runs, aRun('06:00:00', STORED)] })));
    expect(condition(better, 'SnapshotSucceeded')).toBe(
      'True/SnapshotStored: hourly-202603010600 is stored at s3://b/backups/x.db',
    );
  });

  test('those that run, and none when all have ended', () => {
    const running = { runs: [aRun('04:00:00', STORED), aRun('05:00:00')] };
    expect(statusOf(at('05:30:00', {}, undefined, running)).active).toEqual([{ name: 'hourly-202603010500' }]);
    expect(statusOf(at('05:30:00'))).not.toHaveProperty('active');
  });

  test('a snapshot that is complete without an artifact counts as failed, and one that is being deleted does not run', () => {
    const { artifact: _, ...empty } = STORED;
    const status = statusOf(at('05:30:00', {}, undefined, { runs: [aRun('05:00:00', empty)] }));
    expect(status).not.toHaveProperty('lastSuccessful');
    expect(status).not.toHaveProperty('active');
    expect(status.lastFailed).toMatchObject({ name: 'hourly-202603010500', message: 'no reason was reported' });
    const failing = { runs: [aRun('04:00:00', FAILED), aRun('05:00:00', undefined, true)] };
    expect(statusOf(at('05:30:00', {}, undefined, failing))).not.toHaveProperty('active');
  });

  test('a failure of this very minute, and none that a clock which was ahead has named', () => {
    const failed = (time: string) => statusOf(at('05:00:00', {}, undefined, { runs: [aRun(time, FAILED)] }));
    expect(failed('05:00:00').lastFailed?.name).toBe('hourly-202603010500');
    expect(failed('05:01:00')).not.toHaveProperty('lastFailed');
  });

  test('a snapshot of this very minute, and none that a clock which was ahead has named', () => {
    const taken = (time: string) => statusOf(at('05:00:00', {}, undefined, { runs: [aRun(time, STORED)] }));
    expect(taken('05:00:00').lastSuccessful?.name).toBe('hourly-202603010500');
    expect(taken('05:01:00')).not.toHaveProperty('lastSuccessful');
  });

  test('an Event for what is stored, and none for a retention that waits', () => {
    const runs = [aRun('05:00:00', STORED)];
    const plan = decide(at('05:30:00', { retention: { keepLast: 1 } }, undefined, { runs }));
    expect(events(plan)).toEqual(['Normal SnapshotStored: hourly-202603010500 is stored at s3://b/backups/x.db']);
  });

  test('each one that is stored is counted once', () => {
    const first = settled(
      at('04:30:00', {}, undefined, { runs: [aRun('03:00:00', STORED), aRun('04:00:00', STORED)] }),
    );
    expect(first.object.status?.successes).toBe(2);
    const later = {
      ...first,
      now: Date.parse('2026-03-01T05:30:00Z'),
      runs: [...first.runs, aRun('05:00:00', STORED)],
    };
    expect(statusOf(later).successes).toBe(3);
    expect(statusOf(settled(later)).successes).toBe(3);
  });

  test('nothing any more when it is being deleted', () => {
    const status = startedAt('01:00:00');
    const object = aSchedule({}, status);
    const deleting = { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-03-01T05:00:00Z' } };
    const unrecorded = { runs: [aRun('05:00:00', STORED)] }; // of which nothing is recorded any more
    const plan = decide(scheduleWorld('05:30:00', { object: deleting, ...unrecorded }));
    expect([plan.rule, plan.steps, plan.status, plan.events]).toEqual(['beingDeleted', [], status, []]);
  });
});
