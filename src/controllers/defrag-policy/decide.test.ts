/** When a policy creates EtcdDefrags, which it deletes, and what it reports. */
import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import { aDefrag, aPolicy, POLICY_UID } from '../../../test/support/builders/defrags.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdDefragPolicy, EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { scheduledDefragName } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const at = (time: string): number => Date.parse(`2026-03-0${time}Z`);
const run = (time: string, status?: EtcdDefrag['status']): EtcdDefrag =>
  aDefrag({}, status, { name: scheduledDefragName('weekly', at(time)) });
const complete = (time: string, completedAt: string): EtcdDefrag => run(time, { phase: 'Complete', completedAt });

const world = (
  time: string,
  spec: Partial<EtcdDefragPolicy['spec']> = {},
  more: Partial<Observed> & { readonly status?: EtcdDefragPolicyStatus } = {},
): Observed => {
  const { status, ...rest } = more;
  const object = aPolicy(spec, status);
  return { now: at(time), refusal: undefined, object, runs: [], due: { is: 'absent' }, ...rest };
};

const created = (o: Observed): readonly string[] =>
  decide(o).steps.map((step) => (step.do === 'create' ? (step.object.metadata.name ?? '') : `delete ${step.do}`));
const reasonOf = (o: Observed): string => {
  const { status, reason } = findCondition(decide(o).status.conditions, 'Active') ?? {};
  return `${status}/${reason}`;
};
const scheduled = { ...condition('Active', 'True', 'Scheduled'), observedGeneration: 1 };
const known: EtcdDefragPolicyStatus = {
  lastScheduleTime: '2026-03-01T03:00:00Z',
  nextScheduleTime: '2026-03-02T03:00:00Z',
  conditions: [scheduled],
};

describe('an EtcdDefrag is created', () => {
  test('at its time, under the name and with the labels and the owner of the baseline', () => {
    const rule = { freeSpaceAbove: '1Gi' };
    const { steps, events } = decide(world('2T03:00:01', { rule, ttlSecondsAfterFinished: 60 }, { status: known }));
    expect(steps).toMatchObject([
      {
        do: 'create',
        object: {
          metadata: {
            name: `weekly-${at('2T03:00:00') / 1_000}`,
            namespace: 'ns',
            labels: {
              'etcd-operator.cozystack.io/cluster': 'db',
              'etcd-operator.cozystack.io/defrag-policy': 'weekly',
            },
            ownerReferences: [{ kind: 'EtcdDefragPolicy', name: 'weekly', uid: POLICY_UID, controller: true }],
          },
          spec: { clusterRef: { name: 'db' }, rule, ttlSecondsAfterFinished: 60 },
        },
      },
    ]);
    expect(events.map(({ reason }) => reason)).toEqual(['StampedRun']);
  });

  test.each<[string, Observed, number]>([
    ['not before its time', world('1T02:59:59'), 0],
    ['not for a time before the policy existed', world('1T02:00:00', { schedule: '0 0 * * *' }), 0],
    ['not twice', world('2T03:10:00', {}, { runs: [complete('2T03:00:00', '2026-03-02T03:05:00Z')] }), 0],
    ['not while suspended', world('2T03:00:01', { suspend: true }), 0],
    ['not by an invalid schedule', world('2T03:00:01', { schedule: 'nonsense' }), 0],
    ['not while the one before it runs', world('2T03:00:01', {}, { runs: [run('1T03:00:00')], status: known }), 0],
    [
      'beside a running one, with Allow',
      world('2T03:00:01', { concurrencyPolicy: 'Allow' }, { runs: [run('1T03:00:00')], status: known }),
      1,
    ],
    ['in its time zone', world('1T02:00:01', { timeZone: 'Europe/Berlin' }), 1],
    ['not after startingDeadlineSeconds', world('2T03:02:00', { startingDeadlineSeconds: 60 }, { status: known }), 0],
    ['only the newest of those that were missed', world('5T03:00:01', {}, { status: known }), 1],
    ['not under the name of a foreign EtcdDefrag', world('2T03:00:01', {}, { due: { is: 'foreign', owner: 'x' } }), 0],
  ])('%s', (_sentence, o, count) => {
    expect(created(o)).toHaveLength(count);
  });

  test('within its window, at a moment that depends on the cluster', () => {
    const startOf = (cluster: string): string | undefined =>
      decide(world('1T02:00:00', { clusterRef: { name: cluster }, windowSeconds: 3_600 })).status.nextScheduleTime;
    const times = ['a', 'b', 'c', 'd', 'e', 'f'].map((cluster) => startOf(cluster) ?? '');
    expect(new Set(times).size).toBeGreaterThan(4);
    for (const time of times)
      expect([time >= '2026-03-01T03:00:00Z', time <= '2026-03-01T04:00:00Z']).toEqual([true, true]);
  });
});

describe('the status', () => {
  test.each<[string, Observed, string, readonly string[]]>([
    ['names the next run', world('1T02:00:00'), 'True/Scheduled', []],
    ['is suspended', world('1T02:00:00', { suspend: true }), 'False/Suspended', ['Normal Suspended']],
    [
      'reports an invalid schedule',
      world('1T02:00:00', { schedule: 'x' }),
      'False/InvalidSchedule',
      ['Warning InvalidSchedule'],
    ],
    ['reports a refusal', world('1T02:00:00', {}, { refusal: 'quota' }), 'False/Refused', ['Warning Refused']],
    [
      'reports that a run waits for another one',
      world('2T03:00:01', {}, { runs: [run('1T03:00:00')], status: known }),
      'True/Scheduled',
      ['Normal ConcurrencyForbidden'],
    ],
    [
      'reports runs that were missed',
      world('5T03:00:01', {}, { status: known }),
      'True/Scheduled',
      ['Normal StampedRun', 'Warning MissedSchedule'],
    ],
  ])('%s', (_sentence, o, reason, events) => {
    expect([reasonOf(o), decide(o).events.map((e) => `${e.type} ${e.reason}`)]).toEqual([reason, events]);
  });

  test('has the last and the next run, the last success and those that run', () => {
    const runs = [complete('1T03:00:00', '2026-03-01T03:05:00Z'), run('2T03:00:00')];
    const { status, rule, latch } = decide(world('2T04:00:00', {}, { runs }));
    const recorded = { lastScheduleTime: '2026-03-02T03:00:00Z', lastSuccessfulTime: '2026-03-01T03:05:00Z' };
    expect([rule, latch]).toEqual(['record', recorded]);
    expect(status).toMatchObject({
      ...recorded,
      nextScheduleTime: '2026-03-03T03:00:00Z',
      active: [{ name: scheduledDefragName('weekly', at('2T03:00:00')) }],
    });
  });

  test('requeues exactly when the next run is due', () => {
    expect(decide(world('1T02:30:00')).requeueAfterMs).toBe(30 * 60_000);
  });
});

describe('history', () => {
  const runs = ['1T03:00:00', '2T03:00:00', '3T03:00:00'].map((time) => complete(time, '2026-03-03T03:05:00Z'));
  const status: EtcdDefragPolicyStatus = {
    lastScheduleTime: '2026-03-03T03:00:00Z',
    lastSuccessfulTime: '2026-03-03T03:05:00Z',
  };
  const deleted = (historyLimit?: number): readonly string[] => {
    const spec = historyLimit === undefined ? {} : { historyLimit };
    return decide(world('3T04:00:00', spec, { runs, status })).steps.map((step) =>
      step.do === 'delete' ? step.what.name : step.do,
    );
  };
  const nameOf = (time: string): string => scheduledDefragName('weekly', at(time));
  test('keeps the newest historyLimit runs that have finished', () => {
    expect(deleted(2)).toEqual([nameOf('1T03:00:00')]);
    expect(deleted(0)).toHaveLength(3);
    expect(deleted(undefined)).toEqual([]);
  });
  test('never a run that has not finished', () => {
    const active = [run('3T03:00:00')];
    expect(decide(world('3T04:00:00', { historyLimit: 0 }, { runs: active, status })).steps).toEqual([]);
  });
});
