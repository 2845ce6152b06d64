/** Which changes reconcile a member. */
import { expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { member, modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { wireMember } from './controller.ts';

function aWorld(present: EtcdMember = member(1)) {
  const world = modelWorld();
  putInCache(world.members, present);
  const enqueued: string[] = [];
  wireMember(world, (key) => enqueued.push(key));
  return { ...world, news: (): number => enqueued.splice(0).length };
}

test('a new cluster id and the deletion of the cluster reconcile its members, and other status changes do not', () => {
  const { clusters, news } = aWorld();
  const { metadata, ...cluster } = aCluster();
  const now = (version: string, change: object, about: object = {}): void =>
    putInCache<EtcdCluster>(clusters, {
      ...cluster,
      ...change,
      metadata: { ...metadata, ...about, resourceVersion: version },
    });
  now('1', { status: {} });
  expect(news()).toBe(1);
  now('2', { status: { readyMembers: 1 } });
  expect(news()).toBe(0);
  now('3', { status: { readyMembers: 1, clusterID: 'cafe' } });
  expect(news()).toBe(1);
  now('4', { status: { readyMembers: 3, clusterID: 'cafe' } });
  expect(news()).toBe(0);
  now('5', { status: { clusterID: 'cafe' } }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect(news()).toBe(1);
  now('6', { status: { clusterID: 'cafe' } }, { uid: 'another' });
  expect(news()).toBe(1);
});

test('a member that is being deleted is reconciled on every change of its cluster: it waits for the other members', () => {
  const { metadata, ...rest } = member(1);
  const { clusters, news } = aWorld({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const cluster = aCluster();
  putInCache<EtcdCluster>(clusters, cluster);
  expect(news()).toBe(1);
  putInCache<EtcdCluster>(clusters, { ...cluster, status: { readyMembers: 2 } });
  expect(news()).toBe(1);
});
