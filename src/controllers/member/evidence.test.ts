import { describe, expect, test } from 'vitest';
import {
  aMember,
  aPod,
  aVolume,
  CLUSTER_ID,
  MEMBER_ID,
  NOW,
  POD_UID,
} from '../../../test/support/builders/builders.ts';
import { absent, inMemory, ours, world as running } from '../../../test/support/builders/member.ts';
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import type { ContainerStatus } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import { evidenceOf, provenLoss } from './evidence.ts';
import type { Observed } from './observed.ts';
import { failedStartsOf } from './terminations.ts';

const MINUTE = 60_000;
const iso = (msAgo: number): string => new Date(NOW - msAgo).toISOString();

const GONE = { is: 'gone', name: 'n1', observedMs: MINUTE / 2 } as const;
/** By the clock of the node controller, and by that of this process. */
const notReady = (ms: number, observedMs = ms) =>
  ({ is: 'present', name: 'n1', outOfService: false, notReady: { since: NOW - ms, observedMs } }) as const;

/** A joined member that is unreachable. */
const world = (patch: Partial<Observed> = {}, spec = {}): Observed =>
  running({
    member: aMember({ spec, status: { memberID: MEMBER_ID, podUID: POD_UID } }),
    pod: ours(aPod()),
    node: { is: 'present', name: 'n1', outOfService: false },
    etcd: { is: 'unreachable', message: 'connection refused' },
    ...patch,
  });

const fatal = (error: string): string => `{"level":"fatal","msg":"discovery failed","error":"${error}"}`;

/** etcd has exited N times in a row with the same message, and the operator has observed every exit. */
function ended(ends: number, message: string, more: Partial<ContainerStatus> = {}, patch: Partial<Observed> = {}) {
  const terminated = (n: number) => ({ exitCode: 1, reason: 'Error', message, finishedAt: iso((ends - n) * MINUTE) });
  const seen = (n: number, last: Partial<ContainerStatus> = {}): ContainerStatus => ({
    name: 'etcd',
    ready: false,
    restartCount: n - 1,
    image: '',
    imageID: '',
    state: { waiting: { reason: 'CrashLoopBackOff' } },
    lastState: { terminated: terminated(n) },
    ...last,
  });
  const at = (n: number, status: EtcdMemberStatus, last?: Partial<ContainerStatus>): Observed => {
    const o = world({ ...patch, pod: ours(aPod({ status: { containerStatuses: [seen(n, last)] } })) });
    return { ...o, member: { ...o.member, status: { ...o.member.status, ...status } } };
  };
  let status: EtcdMemberStatus = {};
  for (let n = 1; n < ends; n++) {
    const failedStarts = failedStartsOf({ ...at(n, status), etcd: { is: 'unreachable', message: '' } });
    status = failedStarts ? { failedStarts } : {};
  }
  return at(ends, status, more);
}
/** The start after the last exit. */
const runningFor = (ms: number, restartCount = 3) => ({ restartCount, state: { running: { startedAt: iso(ms) } } });
const killed = (reason: string) => ({ exitCode: 137, reason, message: 'panic: wal: crc mismatch', finishedAt: iso(0) });
const fresh = aMember({ spec: { bootstrap: false } });

describe('a member will not recover', () => {
  test.each<[string, Observed, string]>([
    ['its PVC is deleted', world({ volume: absent }), 'DataLost'],
    [
      'the PersistentVolume of its PVC is lost',
      world({ volume: ours({ ...aVolume(), status: { phase: 'Lost' } }) }),
      'VolumeLost',
    ],
    ['the Pod with in-memory data is deleted', world({ pod: absent }, inMemory), 'DataLost'],
    [
      'the Pod with in-memory data has terminated',
      world({ pod: ours(aPod({ status: { phase: 'Failed' } })) }, inMemory),
      'DataLost',
    ],
    ['the Pod with in-memory data was replaced', world({ pod: ours(aPod({ uid: 'other' })) }, inMemory), 'DataLost'],
    ['its node is deleted, and its volume was on it', world({ node: GONE, volumeOnNode: true }), 'NodeLost'],
    ['its node is deleted, with its in-memory data', world({ node: { ...GONE, observedMs: 0 } }, inMemory), 'NodeLost'],
    [
      'its node is out of service, and its volume is on it',
      world({ node: { is: 'present', name: 'n1', outOfService: true }, volumeOnNode: true }),
      'NodeLost',
    ],
    ['its node has been NotReady for ten minutes', world({ node: notReady(10 * MINUTE) }), 'NodeLost'],
    ['etcd was removed', ended(3, fatal('the member has been permanently removed from the cluster')), 'MemberRemoved'],
    [
      'no space is left',
      ended(3, fatal('write /var/lib/etcd/member/wal/0.tmp: no space left on device')),
      'VolumeFull',
    ],
    [
      'its directory is empty, and it was a seed',
      ended(3, fatal('cannot fetch cluster info from peer urls: could not retrieve')),
      'DataInvalid',
    ],
    [
      'its directory is empty, and initialCluster is outdated',
      ended(3, fatal('error validating peerURLs: member count is unequal')),
      'DataInvalid',
    ],
    [
      'its directory is empty, and the leader has sent it entries',
      ended(3, 'panic: tocommit(9) is out of range [lastIndex(0)]. Was the raft log corrupted'),
      'DataInvalid',
    ],
    ['its log is damaged', ended(3, fatal('walpb: crc mismatch')), 'DataInvalid'],
    ['its database is damaged', ended(3, fatal('failed to open database: invalid database')), 'DataInvalid'],
    [
      'its log is damaged, and it was started once more',
      ended(3, fatal('walpb: crc mismatch'), runningFor(5_000)),
      'DataInvalid',
    ],
    ['it exits again and again', ended(6, 'unknown flag'), 'CrashLooping'],
    ['it exits again and again before it has joined', ended(6, 'unknown flag', {}, { member: fresh }), 'CrashLooping'],
  ])('%s', (_what, observed, reason) => {
    expect(evidenceOf(observed)).toMatchObject({ reason });
    expect(evidenceOf(observed)?.leftMs).toBeLessThanOrEqual(0);
  });
});

describe('a member may still recover', () => {
  test.each<[string, Observed]>([
    ['its Pod is deleted, and its PVC exists', world({ pod: absent })],
    ['it has not joined, and its PVC does not exist yet', world({ member: fresh, volume: absent })],
    ['its node is deleted, and its volume can be mounted elsewhere', world({ node: GONE })],
    [
      'its node is deleted, and its etcd responds all the same',
      world({
        node: GONE,
        volumeOnNode: true,
        etcd: { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' },
      }),
    ],
    [
      'its node is out of service, and its volume can be mounted elsewhere',
      world({ node: { is: 'present', name: 'n1', outOfService: true } }),
    ],
    ['it has exited twice', ended(2, fatal('walpb: crc mismatch'))],
    ['it runs again', ended(9, fatal('walpb: crc mismatch'), { ready: true, state: { running: {} } })],
    [
      'it failed to join at first, runs since then, and its network is cut for a moment',
      ended(3, fatal('cannot fetch cluster info from peer urls'), runningFor(MINUTE)),
    ],
    [
      'it failed to join at first, and copies the data of the others now',
      ended(3, fatal('cannot fetch cluster info from peer urls'), runningFor(5_000), {
        etcd: { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' },
      }),
    ],
    [
      'the cluster was bootstrapped in another Pod than the first, whose uid alone is recorded',
      world({ member: aMember({ spec: inMemory, status: { podUID: 'first' } }) }),
    ],
    ['it was OOM-killed the last time', ended(9, 'x', { lastState: { terminated: killed('OOMKilled') } })],
    ['it was killed by a signal the last time', ended(9, 'x', { lastState: { terminated: killed('Error') } })],
    [
      'its container cannot be started',
      ended(9, 'x', { lastState: { terminated: { ...killed('StartError'), exitCode: 128 } } }),
    ],
    ['it has exited five times', ended(5, 'x')],
    ['it has exited often, and runs', ended(9, 'x', { restartCount: 9, state: { running: { startedAt: iso(0) } } })],
    [
      'it exited long ago',
      ended(6, 'x', { lastState: { terminated: { exitCode: 1, message: 'x', finishedAt: iso(11 * MINUTE) } } }),
    ],
    ['its volume denies access, again and again', ended(9, fatal('open /var/lib/etcd: permission denied'))],
    [
      'its data differs from that of a peer, which may be the one that is corrupt',
      ended(9, fatal('checkInitialHashKV failed: found data inconsistency with peers')),
    ],
    ['its disk fails, again and again', ended(9, fatal('read /var/lib/etcd/member/snap/db: input/output error'))],
    [
      'only a warning reports damage',
      ended(3, '{"level":"warn","msg":"lost TCP streaming connection with remote peer","error":"walpb: crc mismatch"}'),
    ],
    [
      'it has not joined, and initialCluster is outdated',
      ended(3, fatal('error validating peerURLs: member count is unequal'), {}, { member: fresh }),
    ],
  ])('%s', (_what, observed) => {
    expect(evidenceOf(observed)).toBeUndefined();
  });

  test('the quoted line of a panic is the one with the error', () => {
    const panic = 'panic: tocommit(9) is out of range [lastIndex(0)]\n\ngoroutine 1 [running]:\n\tnode.go:287 +0x59';
    expect(evidenceOf(ended(3, panic))?.message).toContain('tocommit(9) is out of range');
  });

  test('a start after three exits is judged by them for a minute', () => {
    const o = ended(3, fatal('walpb: crc mismatch'), runningFor(5_000));
    expect(evidenceOf(o)?.standsForMs).toBe(55_000);
    expect(decide(o).requeueAfterMs).toBe(55_000);
  });

  test('the first exit counts as well, and the message has the configured time', () => {
    expect(evidenceOf(ended(6, 'unknown flag'))?.message).toContain('etcd has exited 6 times');
    const node = notReady(MINUTE);
    expect(evidenceOf({ ...world({ node }), nodeLostAfterMs: 20_000 })?.message).toBe(
      'node n1 has been NotReady for 20 s',
    );
  });

  test.each<[string, Observed['node'], number]>([
    ['was deleted, and may register again with its volume', { ...GONE, observedMs: MINUTE / 2 - 1 }, 1],
    ['is NotReady, and the clock of the operator is ahead', notReady(10 * MINUTE, 9 * MINUTE), MINUTE],
    ['is NotReady, and the clock of the operator is behind', notReady(9 * MINUTE, 10 * MINUTE), MINUTE],
  ])('its node %s: it is not replaced yet', (_what, node, leftMs) => {
    const o = world({ node, volumeOnNode: true });
    expect([evidenceOf(o)?.leftMs, provenLoss(o)]).toEqual([leftMs, undefined]);
  });

  test('its node has been NotReady for nine minutes: one is left', () => {
    const o = world({ node: notReady(9 * MINUTE) });
    expect(evidenceOf(o)).toMatchObject({ reason: 'NodeLost', leftMs: MINUTE });
    expect(provenLoss(o)).toBeUndefined(); // the cluster controller does not act before the grace period is over
  });
});
