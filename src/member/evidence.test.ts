import { describe, expect, test } from 'vitest';
import { aMember, aPod, aVolume, CLUSTER_ID, MEMBER_ID, NOW, POD_UID } from '../../test/support/builders.ts';
import { absent, inMemory, ours, world as running } from '../../test/support/member-world.ts';
import type { ContainerStatus } from '../gen/kube.ts';
import { evidenceOf, provenLoss } from './evidence.ts';
import type { Observed } from './observed.ts';

const MINUTE = 60_000;
const iso = (msAgo: number): string => new Date(NOW - msAgo).toISOString();

/** It was there, and does not answer. */
const world = (patch: Partial<Observed> = {}, spec = {}): Observed =>
  running({
    member: aMember({ spec, status: { memberID: MEMBER_ID, podUID: POD_UID } }),
    pod: ours(aPod()),
    node: { is: 'present', name: 'n1', outOfService: false },
    etcd: { is: 'silent', why: 'connection refused' },
    ...patch,
  });

/** etcd has ended so often, last with these words. */
const ended = (restartCount: number, message: string, more: Partial<ContainerStatus> = {}, reason = 'Error') =>
  ours(
    aPod({
      status: {
        containerStatuses: [
          {
            name: 'etcd',
            ready: false,
            restartCount,
            image: '',
            imageID: '',
            state: { waiting: { reason: 'CrashLoopBackOff' } },
            lastState: { terminated: { exitCode: 1, reason, message, finishedAt: iso(MINUTE) } },
            ...more,
          },
        ],
      },
    }),
  );
const runningFor = (ms: number) => ({ state: { running: { startedAt: iso(ms) } } });
const fresh = aMember({ spec: { bootstrap: false } });

describe('a member will not come back', () => {
  test.each<[string, Observed, string]>([
    ['its claim is gone', world({ volume: absent }), 'DataLost'],
    [
      'the volume behind its claim is gone',
      world({ volume: ours({ ...aVolume(), status: { phase: 'Lost' } }) }),
      'VolumeLost',
    ],
    ['the Pod with its memory is gone', world({ pod: absent }, inMemory), 'DataLost'],
    [
      'the Pod with its memory has ended',
      world({ pod: ours(aPod({ status: { phase: 'Failed' } })) }, inMemory),
      'DataLost',
    ],
    ['the Pod with its memory is another one', world({ pod: ours(aPod({ uid: 'other' })) }, inMemory), 'DataLost'],
    [
      'its node is gone, and its volume was there',
      world({ node: { is: 'gone', name: 'n1' }, volumeOnNode: true }),
      'NodeLost',
    ],
    ['its node is gone, and its memory with it', world({ node: { is: 'gone', name: 'n1' } }, inMemory), 'NodeLost'],
    [
      'its node is out of service, and its volume is there',
      world({ node: { is: 'present', name: 'n1', outOfService: true }, volumeOnNode: true }),
      'NodeLost',
    ],
    [
      'its node has been silent for ten minutes',
      world({ node: { is: 'present', name: 'n1', outOfService: false, notReadySince: NOW - 10 * MINUTE } }),
      'NodeLost',
    ],
    [
      'etcd was removed',
      world({ pod: ended(2, 'the member has been permanently removed from the cluster') }),
      'MemberRemoved',
    ],
    [
      'no space is left',
      world({ pod: ended(2, 'write /var/lib/etcd/member/wal/0.tmp: no space left on device') }),
      'VolumeFull',
    ],
    [
      'its directory is empty, and it was a seed',
      world({ pod: ended(2, 'cannot fetch cluster info from peer urls: could not retrieve') }),
      'DataInvalid',
    ],
    [
      'its directory is empty, and the list is old',
      world({ pod: ended(2, 'error validating peerURLs: member count is unequal') }),
      'DataInvalid',
    ],
    [
      'its directory is empty, and it was followed',
      world({ pod: ended(2, 'tocommit(9) is out of range [lastIndex(0)]. Was the raft log corrupted') }),
      'DataInvalid',
    ],
    ['its log is damaged', world({ pod: ended(2, 'failed to read WAL: walpb: crc mismatch') }), 'DataInvalid'],
    ['its database is damaged', world({ pod: ended(2, 'failed to open database: invalid database') }), 'DataInvalid'],
    [
      'its data differs from the others',
      world({ pod: ended(2, 'checkInitialHashKV failed: found data inconsistency with peers') }),
      'DataInvalid',
    ],
    [
      'its log is damaged, and it was started once more',
      world({ pod: ended(2, 'walpb: crc mismatch', runningFor(5_000)) }),
      'DataInvalid',
    ],
    ['it ends again and again', world({ pod: ended(5, 'unknown flag') }), 'CrashLooping'],
    [
      'it ends again and again before it has joined',
      world({ member: fresh, pod: ended(5, 'unknown flag') }),
      'CrashLooping',
    ],
  ])('%s', (_what, observed, reason) => {
    expect(evidenceOf(observed)).toMatchObject({ reason });
    expect(evidenceOf(observed)?.leftMs).toBeLessThanOrEqual(0);
  });
});

describe('a member may still come back', () => {
  test.each<[string, Observed]>([
    ['its Pod is gone, and its volume is there', world({ pod: absent })],
    ['it has not joined, and its claim is not made yet', world({ member: fresh, volume: absent })],
    ['its node is gone, and its volume can go elsewhere', world({ node: { is: 'gone', name: 'n1' } })],
    [
      'its node is gone, and its etcd answers all the same',
      world({
        node: { is: 'gone', name: 'n1' },
        volumeOnNode: true,
        etcd: { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' },
      }),
    ],
    [
      'its node is out of service, and its volume can go elsewhere',
      world({ node: { is: 'present', name: 'n1', outOfService: true } }),
    ],
    ['it has ended twice', world({ pod: ended(1, 'walpb: crc mismatch') })],
    ['it runs again', world({ pod: ended(9, 'walpb: crc mismatch', { ready: true, state: { running: {} } }) })],
    [
      'it failed to join at first, runs since then, and its network is cut for a moment',
      world({ pod: ended(2, 'cannot fetch cluster info from peer urls', runningFor(MINUTE)) }),
    ],
    [
      'it failed to join at first, and copies the data of the others now',
      world({
        pod: ended(2, 'cannot fetch cluster info from peer urls', runningFor(5_000)),
        etcd: { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' },
      }),
    ],
    [
      'the cluster was begun in another Pod than the first, whose uid alone is recorded',
      world({ member: aMember({ spec: inMemory, status: { podUID: 'first' } }) }),
    ],
    ['it lacked memory', world({ pod: ended(9, '', {}, 'OOMKilled') })],
    ['it has ended five times over months', world({ pod: ended(5, 'x', { state: { running: {} } }) })],
    [
      'it ended long ago',
      world({
        pod: ended(5, 'x', { lastState: { terminated: { exitCode: 1, message: 'x', finishedAt: iso(11 * MINUTE) } } }),
      }),
    ],
    [
      'it has not joined, and its list is old',
      world({ member: fresh, pod: ended(2, 'error validating peerURLs: member count is unequal') }),
    ],
  ])('%s', (_what, observed) => {
    expect(evidenceOf(observed)).toBeUndefined();
  });

  test('what is quoted of a panic is the line that says why', () => {
    const panic = 'panic: tocommit(9) is out of range [lastIndex(0)]\n\ngoroutine 1 [running]:\n\tnode.go:287 +0x59';
    expect(evidenceOf(world({ pod: ended(2, panic) }))?.message).toContain('tocommit(9) is out of range');
  });

  test('how often it has ended counts its first start as well, and times are told as they were set', () => {
    expect(evidenceOf(world({ pod: ended(5, 'unknown flag') }))?.message).toContain('etcd has ended 6 times');
    const node = { is: 'present', name: 'n1', outOfService: false, notReadySince: NOW - MINUTE } as const;
    expect(evidenceOf({ ...world({ node }), nodeLostAfterMs: 20_000 })?.message).toBe(
      'nobody has heard of node n1 for 20 s',
    );
  });

  test('its node has been silent for nine minutes: one is left', () => {
    const o = world({ node: { is: 'present', name: 'n1', outOfService: false, notReadySince: NOW - 9 * MINUTE } });
    expect(evidenceOf(o)).toMatchObject({ reason: 'NodeLost', leftMs: MINUTE });
    expect(provenLoss(o)).toBeUndefined(); // nobody acts on it before its grace is over
  });
});
