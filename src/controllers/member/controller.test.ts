/** Which changes reconcile a member. */
import { expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { member, modelWorld, nameOf, podOf, putInCache } from '../../../test/support/builders/ports.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { memberLabels } from '../../api/names.ts';
import type { Node, PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import { isMemberReady, wireMember } from './controller.ts';

function aWorld(present: EtcdMember = member(1)) {
  const world = modelWorld();
  putInCache(world.members, present);
  const enqueued: string[] = [];
  wireMember(world, (key) => enqueued.push(key));
  return { ...world, news: (): number => enqueued.splice(0).length };
}

test('a new cluster id, a suspension and the deletion of the cluster reconcile its members, and other status changes do not', () => {
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
  now('41', { status: { clusterID: 'cafe' }, spec: { ...cluster.spec, suspend: true } });
  expect(news(), 'suspended').toBe(1);
  now('42', { status: { clusterID: 'cafe' } });
  expect(news(), 'resumed').toBe(1);
  now('50', { status: { clusterID: 'cafe' } }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  expect(news()).toBe(1);
  now('60', { status: { clusterID: 'cafe' } }, { uid: 'another' });
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

const on = (node: string): Pod => ({ ...podOf(1), spec: { containers: [], nodeName: node } });
const ownedBy = (kind: string, pod: Pod): Pod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    name: 'x',
    ownerReferences: [{ apiVersion: 'v1', kind, name: 'x', uid: 'x', controller: true }],
  },
});
const retained = (labels: Readonly<Record<string, string>>): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: 'ns', name: `data-${nameOf(1)}`, uid: 'pvc', labels },
});

test('its Pod and its PVC reconcile a member, and those of other owners do not', () => {
  const { pods, volumes, news } = aWorld();
  putInCache(pods, podOf(1));
  expect(news()).toBe(1);
  putInCache(pods, ownedBy('ReplicaSet', podOf(2)));
  expect(news()).toBe(0);
  putInCache(volumes, retained(memberLabels('db', nameOf(1))));
  expect(news()).toBe(1);
  putInCache(volumes, { ...retained({}), metadata: { ...retained({}).metadata, name: 'y', uid: 'y' } });
  expect(news()).toBe(0);
});

test('a node that is not ready, is tainted or deleted reconciles its members and those without a Pod, its heartbeats do not', () => {
  const { pods, volumes, nodes, news } = aWorld();
  const node = (ready: string, version: string, change: object = {}): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1', uid: 'node', resourceVersion: version },
    status: {
      conditions: [
        { type: 'DiskPressure', status: version },
        { type: 'Ready', status: ready },
      ],
    },
    ...change,
  });
  putInCache(pods, on('node-1'), { ...on('node-2'), metadata: { ...podOf(2).metadata } });
  news();
  const put = (...args: Parameters<typeof node>): number => {
    putInCache(nodes, node(...args));
    return news();
  };
  expect(put('True', '1')).toBe(1);
  expect(put('True', '2')).toBe(0);
  expect(put('Unknown', '3')).toBe(1);
  expect(put('Unknown', '4', { spec: { taints: [{ key: 'out-of-service', effect: 'NoExecute' }] } })).toBe(1);
  putInCache(volumes, retained(memberLabels('db', nameOf(1))));
  news();
  nodes.apply('', { type: 'delete', object: node('Unknown', '4') });
  expect(news(), 'the Pod of the PVC is there').toBe(1);
  pods.apply('', { type: 'delete', object: on('node-1') });
  news();
  expect(put('True', '5'), 'the PVC may be on any node').toBe(1);
});

test('when the operator starts, members that are ready and not being deleted are reconciled last', () => {
  const { pods } = aWorld();
  expect(isMemberReady(pods, member(1))).toBe(false);
  putInCache(pods, podOf(1), podOf(2, { ready: false }));
  expect(isMemberReady(pods, member(1))).toBe(true);
  expect(isMemberReady(pods, member(2))).toBe(false);
  expect(isMemberReady(pods, member(1, { deleting: true }))).toBe(false);
});
