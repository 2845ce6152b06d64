/** The phases of an EtcdDefrag, as the baseline has them. */
import { describe, expect, test } from 'vitest';
import { aCluster, condition, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import { aDefrag, DEFRAG_UID, done, MI, outcome } from '../../../test/support/builders/defrags.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { EtcdDefrag, EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { findCondition } from '../../domain/conditions.ts';
import { fleetBusy } from '../../domain/defragmentation.ts';
import { iso } from '../../lib/time.ts';
import { decide } from './decide.ts';
import type { Observed } from './observed.ts';

const HEALTHY = condition('Available', 'True', 'QuorumHealthy', 'All members are ready');
const aHealthy = (more: EtcdClusterStatus = {}) => aCluster({ status: { ...FORMED, conditions: [HEALTHY], ...more } });
const full = aHealthy({ members: [{ name: 'a', role: 'leader', alarms: ['NOSPACE'] }] });
const ago = (minutes: number): string => iso(NOW - minutes * 60_000);

const world = (status: EtcdDefragStatus | undefined, more: Partial<Observed> = {}): Observed => ({
  now: NOW,
  object: aDefrag({}, status),
  cluster: aHealthy(),
  ...more,
});

/** Rule, phase and condition. */
const phaseOf = (o: Observed): readonly string[] => {
  const { rule, status } = decide(o);
  const { status: is, reason } = findCondition(status.conditions, 'DefragChecked') ?? {};
  return [rule, status.phase ?? '', `${is}/${reason}`];
};
const reasons = (o: Observed): readonly string[] => decide(o).events.map(({ type, reason }) => `${type} ${reason}`);

const FLEET = fleetBusy({ running: 10, limit: 10 }) ?? '';
const failed = outcome('b', { outcome: 'Failed', reason: 'RPCError', message: 'disk full', finishedAt: ago(1) });
const members = [done('b'), outcome('a')];

describe('the phase', () => {
  test.each<[string, Observed, readonly string[], readonly string[]]>([
    ['is Pending until the cluster controller begins', world(undefined), ['notStarted', 'Pending', 'False/Queued'], []],
    [
      'is Pending behind an older EtcdDefrag of the same cluster',
      world(undefined, { ahead: 'first' }),
      ['queued', 'Pending', 'False/Queued'],
      [],
    ],
    [
      'is Pending while the cluster is not healthy, with an Event',
      world(undefined, {
        cluster: aHealthy({ conditions: [condition('Available', 'True', 'QuorumAvailable', '2/3')] }),
      }),
      ['notStarted', 'Pending', 'False/ClusterNotHealthy'],
      ['Warning DefragDeferred'],
    ],
    [
      'is Pending while the cluster is suspended',
      world(undefined, { cluster: { ...aHealthy(), spec: { ...aHealthy().spec, suspend: true } } }),
      ['notStarted', 'Pending', 'False/ClusterNotHealthy'],
      ['Warning DefragDeferred'],
    ],
    [
      'is Pending while the cluster controller waits, with its reason',
      world({ waitingFor: 'a snapshot streams from a' }),
      ['notStarted', 'Pending', 'False/ClusterNotHealthy'],
      ['Warning DefragDeferred'],
    ],
    [
      'is Pending while the CRDs are older than the operator, and have no field for the marker of the member',
      world(undefined, {
        cluster: aHealthy({
          conditions: [
            HEALTHY,
            condition('CRDsCurrent', 'False', 'StatusFieldsDropped', 'the API server drops status.defragmentation'),
          ],
        }),
      }),
      ['notStarted', 'Pending', 'False/ClusterNotHealthy'],
      ['Warning DefragDeferred'],
    ],
    ['is Running once members are listed', world({ members }), ['runs', 'Running', 'True/Running'], []],
    [
      'stays Running while the rest has to wait',
      world({ phase: 'Running', members, waitingFor: 'b must be ready' }),
      ['runs', 'Running', 'False/ClusterNotHealthy'],
      ['Warning DefragDeferred'],
    ],
    [
      'is Complete when all members are done',
      world({ phase: 'Running', members: [done('a'), outcome('b', { outcome: 'Skipped', finishedAt: ago(1) })] }),
      ['finished', 'Complete', 'True/Complete'],
      ['Normal Complete'],
    ],
    [
      'is Failed when a member has failed',
      world({ phase: 'Running', members: [done('a'), failed] }),
      ['finished', 'Failed', 'False/MemberFailed'],
      ['Warning MemberFailed', 'Warning DefragFailed'],
    ],
    [
      'waits for the size afterwards',
      world({ members: [outcome('a', { outcome: 'Defragmented', reason: 'AfterSizeUnavailable' })] }),
      ['runs', 'Running', 'True/Running'],
      [],
    ],
    [
      'waits until the NOSPACE alarm is disarmed',
      world({ members: [done('a', { finishedAt: iso(NOW) })] }, { cluster: full }),
      ['disarming', 'Running', 'True/Running'],
      [],
    ],
    [
      'reports an alarm that was not disarmed within a minute',
      world({ members: [done('a', { finishedAt: ago(2) })] }, { cluster: full }),
      ['finished', 'Complete', 'True/Complete'],
      ['Normal Complete', 'Warning AlarmDisarmFailed'],
    ],
    [
      'is Failed without the cluster',
      world(undefined, { cluster: undefined }),
      ['noCluster', 'Failed', 'False/ClusterNotFound'],
      ['Warning ClusterNotFound'],
    ],
    [
      'is Failed when the cluster is being deleted',
      world(undefined, { cluster: aCluster({ deleting: true }) }),
      ['noCluster', 'Failed', 'False/ClusterNotFound'],
      ['Warning ClusterNotFound'],
    ],
    [
      'is Failed after 45 minutes without progress',
      world({ admittedAt: ago(46), startedAt: ago(46), members: [outcome('a')] }),
      ['tooLate', 'Failed', 'False/DeadlineExceeded'],
      ['Warning DeadlineExceeded'],
    ],
    [
      'is not too late while members are done one after the other',
      world({ admittedAt: ago(90), startedAt: ago(90), members: [done('b', { finishedAt: ago(10) }), outcome('a')] }),
      ['runs', 'Running', 'True/Running'],
      [],
    ],
    [
      'is not too late while etcd is busy, which has a limit of its own',
      world(
        { admittedAt: ago(90), members: [outcome('a')] },
        {
          cluster: aHealthy({
            defragmentation: {
              member: 'a',
              defrag: 'nightly',
              uid: DEFRAG_UID,
              attempt: 1,
              startedAt: ago(90),
              dbSizeBefore: 1,
            },
          }),
        },
      ),
      ['runs', 'Running', 'True/Running'],
      [],
    ],
    [
      'is Pending while as many other clusters are defragmented as allowed, however long that takes, without an Event',
      world({ phase: 'Pending', admittedAt: ago(300), waitingFor: FLEET }),
      ['awaitsFleet', 'Pending', 'False/Queued'],
      [],
    ],
    [
      'and starts then: its deadline counts from its start on',
      world({ phase: 'Pending', admittedAt: ago(300), members: [outcome('a')] }),
      ['runs', 'Running', 'True/Running'],
      [],
    ],
    [
      'is Failed when it has waited for 45 minutes for a cluster that was suspended meanwhile',
      world(
        { phase: 'Pending', admittedAt: ago(46), waitingFor: FLEET },
        { cluster: { ...aHealthy(), spec: { ...aHealthy().spec, suspend: true } } },
      ),
      ['tooLate', 'Failed', 'False/DeadlineExceeded'],
      ['Warning DeadlineExceeded'],
    ],
    [
      'does not count the time in the queue',
      world({ phase: 'Pending' }, { object: aDefrag({}, { phase: 'Pending' }, { creationTimestamp: ago(300) }) }),
      ['notStarted', 'Pending', 'False/Queued'],
      [],
    ],
  ])('%s', (_sentence, o, phase, events) => {
    expect([phaseOf(o), reasons(o)]).toEqual([phase, events]);
  });
});

test('times and figures are those of the run', () => {
  const { status } = decide(world({ admittedAt: ago(20), startedAt: ago(10), members: [done('a'), done('b')] }));
  expect(status).toMatchObject({ admittedAt: ago(20), startedAt: ago(10), completedAt: iso(NOW), defragmented: 2 });
  expect(findCondition(status.conditions, 'DefragChecked')?.message).toBe(
    `2 of 2 members defragmented, ${((800 * MI) / MI).toFixed(1)} MiB freed`,
  );
});

describe('a finished EtcdDefrag', () => {
  const over = (ttlSecondsAfterFinished?: number): Observed => {
    const spec = ttlSecondsAfterFinished === undefined ? {} : { ttlSecondsAfterFinished };
    const status: EtcdDefragStatus = { phase: 'Failed', completedAt: ago(10), defragmented: 1 };
    return { now: NOW, object: aDefrag(spec, status), cluster: undefined };
  };
  test('never changes again, even without its cluster', () => {
    const { status, steps, events } = decide(over());
    expect([status, steps, events]).toEqual([over().object.status, [], []]);
  });
  test('is deleted ttlSecondsAfterFinished after it has finished, exactly this object', () => {
    expect(decide(over(660))).toMatchObject({ steps: [], requeueAfterMs: 60_000 });
    const what = { kind: 'EtcdDefrag', namespace: 'ns', name: 'nightly', uid: DEFRAG_UID };
    expect(decide(over(600)).steps).toEqual([{ do: 'delete', what }]);
  });
  test('of the baseline without a completion time is kept', () => {
    const object: EtcdDefrag = aDefrag({ ttlSecondsAfterFinished: 0 }, { phase: 'Complete' });
    expect(decide({ now: NOW, object, cluster: undefined }).steps).toEqual([]);
  });
});
