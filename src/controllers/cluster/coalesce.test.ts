/** Which changes of a status wait for the next one. */
import { describe, expect, test } from 'vitest';
import { up, world } from '../../../test/support/builders/members.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { isMinor } from './coalesce.ts';
import { decide } from './decide.ts';

type Reason = readonly [status: 'True' | 'False', reason: string];
const GROWING: Reason = ['True', 'Scaling'];
const FINE: Reason = ['False', 'WaitingForSeed'];

const status = (
  readyMembers: number,
  available: Reason,
  {
    progressing = GROWING,
    degraded = FINE,
    ...more
  }: { progressing?: Reason; degraded?: Reason } & EtcdClusterStatus = {},
): EtcdClusterStatus => ({
  readyMembers,
  progressDeadline: '2026-01-01T00:10:00Z',
  ...more,
  conditions: Object.entries({ Available: available, Progressing: progressing, Degraded: degraded }).map(
    ([type, [value, reason]]) => ({ type, status: value, reason, message: reason, lastTransitionTime: '' }),
  ),
});
const none = status(0, ['False', 'WaitingForSeed']);
const one = status(1, ['True', 'QuorumAvailable']);

describe('while members are added, the status is written', () => {
  test.each<[string, EtcdClusterStatus, EtcdClusterStatus, 'later' | 'at once']>([
    ['the first member is ready', none, one, 'later'],
    ['another member is ready', one, status(2, ['True', 'QuorumAvailable']), 'later'],
    [
      'the last one is ready',
      one,
      status(3, ['True', 'QuorumHealthy'], { progressing: ['False', 'Reconciled'] }),
      'at once',
    ],
    ['a member is not ready any more', one, none, 'at once'],
    [
      'a member is unhealthy meanwhile',
      one,
      status(2, ['True', 'QuorumAvailable'], { degraded: ['True', 'MembersUnhealthy'] }),
      'at once',
    ],
    [
      'the cluster had lost its quorum',
      status(0, ['False', 'QuorumLost'], { degraded: ['True', 'QuorumLost'] }),
      one,
      'at once',
    ],
    ['a latch is among the changes', none, { ...one, clusterID: 'c0ffee' }, 'at once'],
    [
      'what is being done has another reason',
      none,
      status(1, ['True', 'QuorumAvailable'], { progressing: ['True', 'Repairing'] }),
      'at once',
    ],
  ])('%s: %s', (_, before, after, when) => {
    expect(isMinor(before, after)).toBe(when === 'later');
  });
  test('a ready member outside of a change: at once', () => {
    const { progressDeadline: _, ...before } = none;
    expect(isMinor(before, one)).toBe(false);
  });
});

test('no Event is recorded before the status is written: each reconcile would record it again', () => {
  const o = world([up], { replicas: 3 });
  const written = decide({
    ...o,
    cluster: { ...o.cluster, status: { ...o.cluster.status, progressDeadline: '2099-01-01T00:00:00Z' } },
  }).status;
  const conditions = written.conditions?.map((c) =>
    c.type === 'Available' ? { ...c, status: 'False' as const, reason: 'WaitingForSeed' } : c,
  );
  const before: EtcdClusterStatus = { ...written, readyMembers: 0, ...(conditions && { conditions }) };
  expect(isMinor(before, written)).toBe(true);
  expect(decide({ ...o, cluster: { ...o.cluster, status: before } }).events).toEqual([]);
});
