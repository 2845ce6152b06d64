import { describe, expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import { facts, HEALTHY, member } from '../../../test/support/builders/plugin.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { restartProgress, rolloutRefusal, versionProgress } from './rollout.ts';

type Options = NonNullable<Parameters<typeof facts>[0]>;
const cluster = (status: Partial<EtcdClusterStatus> = {}, spec: Options['spec'] = {}): EtcdCluster =>
  facts({ spec: { version: '3.7.3', ...spec }, status: { members: all('3.7.3'), clusterVersion: '3.7.0', ...status } })
    .cluster;
const all = (...versions: readonly string[]): NonNullable<EtcdClusterStatus['members']> =>
  [1, 2, 3].map((index) => ({
    name: `db-aaaa${index}`,
    role: 'follower',
    version: versions[index - 1] ?? versions[0] ?? '',
  }));
const progressing = (status: 'True' | 'False', reason: string) => [
  HEALTHY[0] ?? condition('Available', 'True', ''),
  condition('Progressing', status, reason, 'why'),
];
const notReady = (reason: string) => [...HEALTHY, condition('VersionChangeReady', 'False', reason, 'why')];
const edited = (of: EtcdCluster): EtcdCluster => ({
  ...of,
  metadata: { ...of.metadata, generation: 2 },
  status: {
    ...of.status,
    conditions: (of.status?.conditions ?? []).map((each) => ({ ...each, observedGeneration: 1 })),
  },
});

describe('a version is reached', () => {
  test('when all members run it, and etcd has agreed on its minor', () => {
    expect(versionProgress(cluster(), '3.7.3')).toEqual({ line: '3.7.3: all 3 members run it', ended: 'good' });
  });

  test.each<[string, EtcdCluster, string]>([
    ['the operator has not observed the edit', edited(cluster()), 'waiting until the operator has observed the edit'],
    ['one member runs another', cluster({ members: all('3.7.3', '3.6.16') }), '2 of 3 members run it'],
    ['etcd has not raised its cluster version', cluster({ clusterVersion: '3.6.0' }), '3 of 3 members run it'],
    ['the rollout has not ended', cluster({ rollout: { since: '2026-01-01T11:00:00Z' } }), '3 of 3 members run it'],
    ['the last member is not ready', cluster({ conditions: progressing('True', 'RollingOut') }), 'why'],
    ['a quorum is missing', cluster({ conditions: [condition('Available', 'False', 'QuorumLost')] }), '3 of 3'],
    [
      'it waits for a window',
      cluster({ members: all('3.6.16'), conditions: progressing('False', 'WaitingForWindow') }),
      'why',
    ],
    ['a member has to become healthy', cluster({ conditions: notReady('MembersUnhealthy') }), 'MembersUnhealthy: why'],
    ['a snapshot is taken first', cluster({ conditions: notReady('TakingSnapshot') }), 'TakingSnapshot: why'],
  ])('not yet: %s', (_, given, says) => {
    const { line, ended } = versionProgress(given, '3.7.3');
    expect([line, ended]).toEqual([expect.stringContaining(says), undefined]);
  });

  test.each<[string, EtcdCluster, string]>([
    ['a member has failed', cluster({ conditions: progressing('False', 'RolloutFailed') }), 'RolloutFailed: why'],
    ['a user has suspended it', cluster({ conditions: progressing('False', 'Suspended') }), 'Suspended: why'],
    ['a flag is unknown to it', cluster({ conditions: notReady('UnknownFlags') }), 'UnknownFlags: why'],
    ['a user has edited the version', cluster({}, { version: '3.6.16' }), 'spec.version was changed to 3.6.16'],
    ['it is being deleted', facts({ deleting: true }).cluster, 'being deleted'],
  ])('never: %s', (_, given, says) => {
    const { line, ended } = versionProgress(given, '3.7.3');
    expect([line, ended]).toEqual([expect.stringContaining(says), 'bad']);
  });
});

describe('a restart', () => {
  const before = new Set(['a', 'b']);
  const pods = (...uids: readonly string[]) =>
    uids.map((uid) => {
      const { pod } = member(1, { pod: uid === 'crashes' ? 'crashing' : 'running' });
      return pod ? { pod: { ...pod, metadata: { ...pod.metadata, uid } } } : {};
    });
  const at = (given: EtcdCluster, ...uids: readonly string[]) =>
    restartProgress(given, pods(...uids), { value: 'now', before }).ended;

  test('has ended when every Pod is another one and ready', () => {
    expect(at(cluster(), 'c', 'd')).toBe('good');
    expect(at(cluster(), 'c', 'b')).toBeUndefined();
    expect(at(cluster(), 'c', 'crashes')).toBeUndefined();
    expect(at(cluster({ conditions: progressing('True', 'RollingOut') }), 'c', 'd')).toBeUndefined();
    expect(at(cluster())).toBeUndefined();
  });

  test('has failed by its own failure, not by that of an earlier one', () => {
    const failed = (restartedAt?: string) =>
      cluster({
        conditions: progressing('False', 'RolloutFailed'),
        rollout: { failed: { member: 'm', at: '', message: 'x', ...(restartedAt && { restartedAt }) } },
      });
    expect(at(failed('now'), 'a', 'b')).toBe('bad');
    expect(at(failed('before'), 'a', 'b')).toBeUndefined();
    expect(at(failed(), 'a', 'b')).toBeUndefined();
    expect(at(cluster({}, { suspend: true }), 'a', 'b')).toBe('bad');
  });
});

describe('no rollout starts', () => {
  test.each<[string, EtcdCluster, string]>([
    ['suspended', cluster({}, { suspend: true }), 'kubectl etcd unsuspend db'],
    ['paused', cluster({}, { replicas: 0 }), 'paused'],
    ['as the Go operator leaves it', facts({}).cluster, 'its status lists no members'],
    ['never bootstrapped', { ...cluster(), status: {} }, 'never bootstrapped'],
  ])('%s', (_, given, says) => expect(rolloutRefusal(given)).toContain(says));

  test('otherwise it does', () => expect(rolloutRefusal(cluster())).toBeUndefined());
});
