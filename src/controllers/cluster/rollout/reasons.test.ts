/** Why members are restarted after a restore. */
import { expect, test } from 'vitest';
import { NOW } from '../../../../test/support/builders/builders.ts';
import { down, type Is, name, up, world } from '../../../../test/support/builders/members.ts';
import type { EtcdClusterSpec } from '../../../api/etcd-cluster.ts';
import { decide } from '../decide.ts';

const pod = {
  is: 'present',
  uid: 'pod-1',
  ip: '10.0.0.1',
  ready: true,
  startedAt: NOW - 1_000,
  maxLearners: 8,
} as const;
const seed = { pod: { ...pod, isForRestore: true } } as const;
const earlier = { pod: { ...pod, restore: { is: 'done' } } } as const;
const s3 = { endpoint: 'https://s3', bucket: 'b', key: 'x.db' };
type Source = NonNullable<NonNullable<EtcdClusterSpec['bootstrap']>['restore']>['source'];
const PVC: Source = { pvc: { claimName: 'backups', subPath: 'x.db' } };
const IDENTITY: Source = { s3: { ...s3, serviceAccountName: 'reader' } };
const SECRET: Source = { s3: { ...s3, credentialsSecretRef: { name: 'keys' } } };
const restored = (members: readonly Is[], source: Source) =>
  decide(world(members, { leader: 2, spec: { bootstrap: { restore: { source } } } }));

test.each<[string, readonly Is[], Source, string]>([
  ['restarts once the cluster runs: the volume with the snapshots', [seed, up, up], PVC, 'restart'],
  ['restarts once the cluster runs: the cloud identity of the store', [seed, up, up], IDENTITY, 'restart'],
  ['stays: etcd does not mount the Secret of the store', [seed, up, up], SECRET, 'steady'],
  ['stays: it is the only member, and its clients would notice', [seed], PVC, 'steady'],
  ['waits until all others are healthy', [seed, up, down], PVC, 'waitForMembers'],
  ['stays: an earlier operator made its Pod, and an upgrade restarts no member', [earlier, up, up], PVC, 'steady'],
])('the seed of a restored cluster %s', (_what, members, source, rule) => {
  expect(restored(members, source).rule).toBe(rule);
});

test('the message says what the restart is for', () => {
  expect(restored([seed, up, up], PVC).message).toContain(
    `${name(1)} is restarted to drop the access to the store that it was restored from`,
  );
});
