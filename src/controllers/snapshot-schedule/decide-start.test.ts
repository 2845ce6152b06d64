/** When a snapshot is started, which one, and by which clock. */
import { describe, expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import {
  ARTIFACT,
  aRun,
  aSchedule,
  at,
  condition,
  doing,
  STORED,
  settled,
  startedAt,
} from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleSpec } from '../../api/etcd-snapshot-schedule.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

describe('a snapshot is started', () => {
  test.each<[string, Observed, readonly string[]]>([
    ['not before its minute', at('00:59:59'), ['waitForNext']],
    ['at its minute', at('01:00:00'), ['startSnapshot', '+hourly-202603010100']],
    ['for the newest of several that were missed', at('05:30:00'), ['startSnapshot', '+hourly-202603010500']],
    ['not a second time when it is recorded', at('05:30:00', {}, startedAt('05:00:00')), ['waitForNext']],
    [
      'at once, for a schedule that asks for it: named after the minute of its creation',
      at('00:20:00', { immediate: true }, undefined, { cluster: aCluster({ status: FORMED }) }),
      ['startSnapshot', '+hourly-202603010000'],
    ],
    [
      'at once only when the cluster runs',
      at('00:20:00', { immediate: true }, undefined, { cluster: aCluster() }),
      ['waitForNext'],
    ],
    [
      'at once only the first time',
      at('00:20:00', { immediate: true }, startedAt('00:00:00'), { cluster: aCluster({ status: FORMED }) }),
      ['waitForNext'],
    ],
    ['not while suspended', at('05:30:00', { suspend: true }), ['waitForNext']],
    ['not for an invalid schedule', at('05:30:00', { schedule: '0 0 30 2 *' }), ['waitForNext']],
    ['not for an invalid time zone', at('05:30:00', { timeZone: 'Mars/Base' }), ['waitForNext']],
    [
      'in the zone',
      at('05:30:00', { schedule: '0 7 * * *', timeZone: 'Europe/Berlin' }, startedAt('00:00:00')),
      ['waitForNext'],
    ],
    [
      'in the zone, an hour earlier than in UTC',
      at('06:00:00', { schedule: '0 7 * * *', timeZone: 'Europe/Berlin' }),
      ['startSnapshot', '+hourly-202603010600'],
    ],
    ['not without a cluster', at('05:30:00', {}, undefined, { cluster: undefined }), ['waitForNext']],
    [
      'not for a cluster that is being deleted',
      at('05:30:00', {}, undefined, { cluster: aCluster({ deleting: true }) }),
      ['waitForNext'],
    ],
    [
      'not for a paused cluster',
      at('05:30:00', {}, undefined, { cluster: aCluster({ spec: { replicas: 0 } }) }),
      ['waitForNext'],
    ],
    [
      'for a cluster whose pause waits: its members run',
      at('05:30:00', {}, undefined, { cluster: aCluster({ spec: { replicas: 0 }, status: FORMED }) }),
      ['startSnapshot', '+hourly-202603010500'],
    ],
    ['not later than the deadline', at('05:30:00', { startingDeadlineSeconds: 1799 }), ['waitForNext']],
    [
      'up to the deadline',
      at('05:30:00', { startingDeadlineSeconds: 1800 }),
      ['startSnapshot', '+hourly-202603010500'],
    ],
    [
      'some seconds late in any case',
      at('05:00:10', { startingDeadlineSeconds: 0 }),
      ['startSnapshot', '+hourly-202603010500'],
    ],
    ['not many seconds late without a deadline', at('05:00:11', { startingDeadlineSeconds: 0 }), ['waitForNext']],
    [
      'not over a foreign snapshot of its name',
      at('05:30:00', {}, undefined, { due: { is: 'foreign', owner: 'no controller' } }),
      ['waitForNext'],
    ],
  ])('%s', (_name, world, expected) => {
    expect(doing(decide(world))).toEqual(expected);
  });

  const running = aRun('04:00:00', { phase: 'Started' });
  const after = startedAt('04:00:00');
  test.each<[string, Partial<EtcdSnapshotScheduleSpec>, EtcdSnapshot, readonly string[]]>([
    ['Forbid is the default', {}, running, ['waitForNext']],
    ['Forbid waits', { concurrencyPolicy: 'Forbid' }, running, ['waitForNext']],
    [
      'Forbid does not wait for one that was just made',
      { concurrencyPolicy: 'Forbid' },
      aRun('04:00:00'),
      ['waitForNext'],
    ],
    ['Allow does not wait', { concurrencyPolicy: 'Allow' }, running, ['startSnapshot', '+hourly-202603010500']],
    [
      'Replace deletes the active one first',
      { concurrencyPolicy: 'Replace' },
      running,
      ['startSnapshot', '-hourly-202603010400', '+hourly-202603010500'],
    ],
    [
      'Forbid does not wait for one that is being deleted',
      {},
      aRun('04:00:00', { phase: 'Started' }, true),
      ['startSnapshot', '+hourly-202603010500'],
    ],
  ])('%s', (_name, spec, run, expected) => {
    expect(doing(decide(at('05:30:00', spec, after, { runs: [run] })))).toEqual(expected);
  });

  test('a waiting snapshot starts when the active one has finished, and is the next until then', () => {
    const world = at('05:30:00', {}, { ...after, nextScheduleTime: '2026-03-01T05:00:00Z' }, { runs: [running] });
    const waiting = decide(world);
    expect(waiting.status.nextScheduleTime).toBe('2026-03-01T05:00:00Z');
    expect(condition(waiting, 'Scheduled')).toBe(
      'True/WaitingForLast: the snapshot of 2026-03-01T05:00:00Z waits until hourly-202603010400 has finished',
    );
    expect(waiting.status.active).toEqual([{ name: 'hourly-202603010400' }]);
    const ended = decide({ ...world, runs: [aRun('04:00:00', STORED)] });
    expect(doing(ended)).toEqual(['record']);
    expect(doing(decide(settled({ ...world, runs: [aRun('04:00:00', STORED)] })))).toEqual([
      'startSnapshot',
      '+hourly-202603010500',
    ]);
  });

  test('a snapshot created before an operator crash is found, recorded and not created again', () => {
    const world = at('05:00:01', {}, startedAt('04:00:00'), { runs: [aRun('05:00:00')] });
    const plan = decide(world);
    expect([plan.rule, plan.latch]).toEqual(['record', { lastScheduleTime: '2026-03-01T05:00:00Z' }]);
    expect(doing(decide(settled(world)))).toEqual(['waitForNext']);
  });

  test('it is built from the schedule, and owned by it', () => {
    const spec = { compression: 'Zstd', encryption: { keySecretRef: { name: 'key' } } } as const;
    const [step] = decide(at('01:00:00', spec)).steps;
    expect(step?.do === 'create' && step.object).toEqual({
      apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
      kind: 'EtcdSnapshot',
      metadata: {
        name: 'hourly-202603010100',
        namespace: 'ns',
        labels: { 'etcd-operator.cozystack.io/schedule': 'hourly' },
        ownerReferences: [
          {
            apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
            kind: 'EtcdSnapshotSchedule',
            name: 'hourly',
            uid: aSchedule().metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: { clusterRef: { name: 'db' }, destination: aSchedule().spec.destination, ...spec },
    });
  });
});

describe('when the clock is wrong', () => {
  test('a clock set back by some seconds does not start a snapshot again', () => {
    const world = at('04:59:58', {}, startedAt('05:00:00'), { runs: [aRun('05:00:00')] });
    expect(doing(decide(world))).toEqual(['waitForNext']);
    expect(decide(world).status.nextScheduleTime).toBe('2026-03-01T06:00:00Z');
  });

  test('a clock that was a year ahead does not stop the schedule for a year', () => {
    const ahead = { lastScheduleTime: '2027-03-01T05:00:00Z' };
    const world = at('04:30:00', {}, ahead);
    expect([decide(world).rule, decide(world).latch]).toEqual(['record', { lastScheduleTime: '2026-03-01T04:30:00Z' }]);
    expect(doing(decide({ ...settled(world), now: Date.parse('2026-03-01T05:00:00Z') }))).toEqual([
      'startSnapshot',
      '+hourly-202603010500',
    ]);
  });

  test('a snapshot stored by a clock that was ahead is not the last for ever', () => {
    const ahead = { lastSuccessful: { name: 'hourly-202703010500', time: '2027-03-01T05:00:00Z', artifact: ARTIFACT } };
    const world = at('05:30:00', {}, { ...ahead, ...startedAt('05:00:00') }, { runs: [aRun('05:00:00', STORED)] });
    expect(decide(world).status.lastSuccessful?.name).toBe('hourly-202603010500');
  });
});

describe('jitter', () => {
  const spec = { jitterSeconds: 600 };
  test('is the same for the same minute, and not for all', () => {
    const delays = Array.from({ length: 24 }, (_, hour) => {
      const plan = decide(
        at(`${String(hour).padStart(2, '0')}:00:00`, spec, startedAt(`${String(hour).padStart(2, '0')}:00:00`)),
      );
      return (Date.parse(plan.status.nextScheduleTime ?? '') / 1000) % 3600;
    });
    expect(Math.max(...delays)).toBeLessThanOrEqual(600);
    expect(new Set(delays).size).toBeGreaterThan(12);
  });

  test('delays the start, not the name', () => {
    const next = decide(at('00:30:00', spec)).status.nextScheduleTime ?? '';
    expect(Date.parse(next)).toBeGreaterThan(Date.parse('2026-03-01T01:00:00Z'));
    const before = decide(at(new Date(Date.parse(next) - 1000).toISOString().slice(11, 19), spec));
    expect([doing(before), before.status.nextScheduleTime, before.requeueAfterMs]).toEqual([
      ['waitForNext'],
      next,
      1000,
    ]);
    expect(doing(decide(at(next.slice(11, 19), spec)))).toEqual(['startSnapshot', '+hourly-202603010100']);
  });

  test('never reaches the next minute of the schedule', () => {
    for (let minute = 1; minute < 60; minute++) {
      const time = `00:${String(minute).padStart(2, '0')}:59`;
      const slot = `hourly-2026030100${String(minute).padStart(2, '0')}`;
      const plan = decide(
        at(
          time,
          { schedule: '* * * * *', jitterSeconds: 86_400 },
          startedAt(`00:${String(minute - 1).padStart(2, '0')}:00`),
        ),
      );
      expect(doing(plan)).toEqual(['startSnapshot', `+${slot}`]);
    }
  });
});
