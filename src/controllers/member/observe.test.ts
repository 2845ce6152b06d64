/** Observing a member, with models of the API server and of etcd. */

import { describe, expect, test } from 'vitest';
import { aVolume, FORMED, LATCHED } from '../../../test/support/builders/builders.ts';
import {
  failingReads,
  type ModelWorld,
  member,
  modelWorld,
  nameOf,
  podOf,
  putInCache,
  runningCluster,
  storedCluster,
} from '../../../test/support/builders/ports.ts';
import { etcdClusters, volumeClaimName } from '../../api/names.ts';
import { hexId } from '../../etcd/ids.ts';
import type { PersistentVolume } from '../../gen/kube.ts';
import { persistentVolumeClaims, persistentVolumes, pods } from '../../kube/resources.ts';
import { ObservedStates } from '../../runtime/elapsed.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import type { Observed } from './observed.ts';

const { signal } = new AbortController();

async function look(world: ModelWorld, n = 1): Promise<Observed> {
  const seen = await observe(world, `ns/${nameOf(n)}`, signal, NO_MEMORY);
  if (!seen) throw new Error('there is no such member');
  return seen;
}
const leaving = (world: ModelWorld, n: number): void => {
  const [cluster] = world.clusters.all();
  putInCache(world.members, member(n, { deleting: true }, cluster?.metadata.uid));
};

test('an object that is not in the cache yet does not count as deleted', async () => {
  const world = modelWorld();
  putInCache(world.members, member(1));
  await world.client.create(pods, podOf(1));
  const { name: _, ...metadata } = aVolume().metadata;
  await world.client.create(persistentVolumeClaims, {
    ...aVolume(),
    metadata: { ...metadata, name: volumeClaimName(nameOf(1)) },
  });
  const o = await look(world);
  expect([o.pod.is, o.volume.is]).toEqual(['ours', 'foreign']);
});

test('before a Pod is created, the cluster is read from the API server: a formed one must not be bootstrapped again', async () => {
  const world = modelWorld();
  const stored = await storedCluster(world, FORMED);
  putInCache(world.members, member(1, {}, stored.metadata.uid));
  putInCache(world.clusters, { ...stored, status: LATCHED });
  expect((await look(world)).cluster?.status?.clusterID).toBe(FORMED.clusterID);
});

test('before a Pod with TLS is created, the cluster is read from the API server: it may have recorded another CA bundle', async () => {
  const world = modelWorld();
  const stored = await storedCluster(world, { ...FORMED, trust: { peer: 'new' } });
  putInCache(world.members, member(1, { spec: { tls: { peerSecretRef: { name: 'x' } } } }, stored.metadata.uid));
  putInCache(world.clusters, { ...stored, status: { ...FORMED, trust: { peer: 'old' } } });
  expect((await look(world)).cluster?.status?.trust?.peer).toBe('new');
});

test('before the finalizer is released, the cluster is read from the API server: it may have formed, and this be its only data', async () => {
  const world = modelWorld();
  const stored = await storedCluster(world, FORMED);
  putInCache(world.members, member(1, { deleting: true }, stored.metadata.uid));
  putInCache(world.pods, podOf(1));
  putInCache(world.clusters, { ...stored, status: LATCHED });
  expect((await look(world)).cluster?.status?.clusterID).toBe(FORMED.clusterID);
});

test('a cluster of the same name is not the one that the member belongs to', async () => {
  const world = modelWorld();
  const { metadata } = await storedCluster(world, FORMED);
  putInCache(world.members, member(1, {}, metadata.uid));
  expect((await look(world)).cluster?.metadata.uid).toBe(metadata.uid);
  putInCache(world.members, member(1, {}, 'another'));
  expect((await look(world)).cluster).toBeUndefined();
});

test('a member without an owner belongs to the cluster that it names, if the token is that of the cluster', async () => {
  const world = modelWorld();
  const { metadata, status } = await storedCluster(world, FORMED);
  const unowned = (n: number, clusterToken = status?.clusterToken ?? '') => {
    const made = member(n, { spec: { clusterToken }, deleting: n === 1 });
    const { ownerReferences: _, ...rest } = made.metadata;
    return { ...made, metadata: rest };
  };
  putInCache(world.members, unowned(1), unowned(3, 'another'), member(2, {}, metadata.uid));
  const o = await look(world);
  expect([o.cluster?.metadata.uid, o.peers.is]).toEqual([metadata.uid, 'unreachable']);
  putInCache(world.members, unowned(1, 'another'));
  expect((await look(world)).cluster).toBeUndefined();
});

test('an address that responds as another member does not give this one its id', async () => {
  const world = modelWorld();
  const [, second] = await runningCluster(world, 2);
  const [cluster] = world.clusters.all();
  const memberID = hexId(second?.disk?.id ?? 0n);
  putInCache(world.members, member(2, { status: { isVoter: true, memberID } }, cluster?.metadata.uid));
  putInCache(world.pods, podOf(1, { ready: true, status: { podIP: '10.0.0.2' } }));
  expect((await look(world)).etcd).toMatchObject({ is: 'unreachable' });
  // Once recorded, the mismatch is reported as what it is.
  putInCache(world.members, member(1, { status: { isVoter: true, memberID: 'f00' } }, cluster?.metadata.uid));
  expect((await look(world)).etcd).toMatchObject({ is: 'answers', memberID });
});

test('for a member that is being deleted, the peers are asked with a linearizable read', async () => {
  const world = modelWorld();
  const [first, second, third] = await runningCluster(world, 3);
  if (!first?.disk || !second?.disk || !third?.disk) throw new Error('there are three');
  leaving(world, 1);
  const ids = [first, second, third].map(({ disk }) => hexId(disk?.id ?? 0n));
  const { peers } = await look(world);
  expect(peers.is === 'answer' && peers.members.map((m) => m.id).toSorted()).toEqual(ids.toSorted());
  world.model.stop(second);
  world.model.advance(5_000);
  expect((await look(world)).peers.is).toBe('answer');
});

test('a peer without quorum does not prove that a member was removed', async () => {
  const world = modelWorld();
  const [first, , third] = await runningCluster(world, 3);
  leaving(world, 1);
  for (const stopped of [first, third]) if (stopped) world.model.stop(stopped);
  expect((await look(world)).peers.is).toBe('unreachable');
});

test('a Pod IP of a peer that is reused by another cluster does not prove that a member was removed', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  leaving(world, 1);
  const ref = { namespace: 'ns', name: 'db' };
  await world.client.patch(etcdClusters, ref, { status: FORMED }, { subresource: 'status' });
  const { peers } = await look(world);
  expect(peers.is === 'unreachable' && peers.message).toContain(`this cluster has ${FORMED.clusterID}`);
});

test('a peer started with --force-new-cluster does not prove that a member was removed, while another peer lists it', async () => {
  const world = modelWorld();
  const [first, second, third] = await runningCluster(world, 3);
  if (!first?.disk || !second?.disk || !third?.disk) throw new Error('there are three');
  const { id } = first.disk;
  leaving(world, 1);
  const counted = async (): Promise<unknown> => {
    const { peers } = await look(world);
    return peers.is === 'answer' ? peers.members.some((m) => m.id === hexId(id)) : peers.is;
  };
  world.model.forceNew(second);
  world.model.advance(5_000);
  expect(await counted()).toBe(true);
  world.model.stop(third);
  expect(await counted()).toBe(false); // no peer is left that lists it
});

test('the only member has no peers, whichever foreign members have its label', async () => {
  const world = modelWorld();
  await runningCluster(world, 2);
  leaving(world, 1);
  putInCache(world.members, member(2, {}, 'another'));
  expect((await look(world)).peers).toEqual({ is: 'none' });
});

const on = (key: string, ...values: readonly string[]) => ({
  nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values }] }] } },
});
const HOST = 'kubernetes.io/hostname';
test.each([
  ['that any node can reach', {}, false],
  ['on its node', on(HOST, 'node-1'), true],
  ['on its node, as the driver calls it', on('topology.topolvm.io/node', 'node-1'), true],
  ['on its node and another one', on(HOST, 'node-1', 'node-2'), false],
  ['in its zone', on('topology.kubernetes.io/zone', 'x'), false],
  ['in its location', on('csi.hetzner.cloud/location', 'x'), false],
])('a node is deleted; is a volume %s lost with it?', async (_where, spec, lost) => {
  const world = modelWorld();
  putInCache(world.nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-2', labels: { [HOST]: 'node-2' } },
  });
  putInCache(world.members, member(1));
  putInCache(world.pods, { ...podOf(1), spec: { nodeName: 'node-1', containers: [] } });
  const { metadata } = podOf(1);
  const claim = { ...aVolume(), metadata: { ...metadata, name: volumeClaimName(nameOf(1)) } };
  putInCache(world.volumes, { ...claim, spec: { volumeName: 'pv' } });
  const volume: PersistentVolume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv' }, spec };
  await world.client.create(persistentVolumes, volume);
  const o = await look(world);
  expect([o.node.is, o.volumeOnNode]).toEqual(['gone', lost]);
});

describe('S8: without permissions for what is cluster-scoped', () => {
  const onNode = async (client?: ReturnType<typeof failingReads>) => {
    const world = modelWorld(client);
    putInCache(world.members, member(1));
    const metadata = { ...podOf(1).metadata, name: volumeClaimName(nameOf(1)) };
    const annotations = { ...metadata.annotations, 'volume.kubernetes.io/selected-node': 'node-1' };
    const claim = { ...aVolume(), metadata: { ...metadata, annotations } };
    putInCache(world.volumes, { ...claim, spec: { volumeName: 'pv' } });
    return world;
  };
  test('the node of a member is unknown, with a Pod and without one, and nothing is asked', async () => {
    const world = await onNode(failingReads(403, 'nodes', 'persistentvolumes'));
    world.nodes.apply('', { type: 'missing' });
    expect(await look(world)).toMatchObject({ node: { is: 'unknown' }, volumeOnNode: false });
    putInCache(world.pods, { ...podOf(1), spec: { nodeName: 'node-1', containers: [] } });
    expect(await look(world)).toMatchObject({ node: { is: 'unknown' }, volumeOnNode: false });
  });
  test('a volume that may not be read is not lost with its node', async () => {
    const world = await onNode(failingReads(403, 'persistentvolumes'));
    putInCache(world.pods, { ...podOf(1), spec: { nodeName: 'node-1', containers: [] } });
    expect(await look(world)).toMatchObject({ node: { is: 'gone' }, volumeOnNode: false });
  });
  test('a volume that cannot be read for now is read again', async () => {
    const world = await onNode(failingReads(500, 'persistentvolumes'));
    putInCache(world.pods, { ...podOf(1), spec: { nodeName: 'node-1', containers: [] } });
    await expect(look(world)).rejects.toThrow('500');
  });
});

test('a node is observed since this process first saw its state, and from the start when it changes', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  putInCache(world.pods, { ...podOf(1), spec: { nodeName: 'node-1', containers: [] } });
  let now = 0;
  const states = new ObservedStates({ monotonic: () => now });
  const ports = { ...world, observedMs: (key: string, state: string | undefined) => states.forMs(key, state) };
  const seen = async (status: string | undefined, lastTransitionTime = '2026-01-01T00:00:00Z') => {
    now += 1_000;
    const metadata = { name: 'node-1' };
    const conditions = [{ type: 'Ready', status: status ?? '', lastTransitionTime }];
    const node = { apiVersion: 'v1', kind: 'Node', metadata, status: { conditions } } as const;
    ports.nodes.apply('', { type: status === undefined ? 'delete' : 'put', object: node });
    const o = await look(ports);
    if (o.node.is === 'gone') return o.node.observedMs;
    return o.node.is === 'present' ? o.node.notReady?.observedMs : undefined;
  };
  expect([await seen('True'), await seen('Unknown'), await seen('Unknown')]).toEqual([undefined, 0, 1_000]);
  expect(await seen('Unknown', '2026-01-01T00:10:00Z')).toBe(0);
  expect([await seen(undefined), await seen(undefined), await seen('True')]).toEqual([0, 1_000, undefined]);
});

describe('a member without a Pod, and the node that was chosen for its PVC', () => {
  const volume = (spec: object): PersistentVolume => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pv' },
    spec,
  });
  const notReady = { conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime: '2026-01-01T00:00:00Z' }] };
  test.each<[sentence: string, spec: object, node: string, selected?: string]>([
    ['a PVC that has no volume yet waits for that node', {}, 'present'],
    ['an annotation that cannot be the name of a node is ignored', {}, 'unknown', '../secrets/x'],
    ['a volume that is bound to that node', { volumeName: 'pv', ...on(HOST, 'node-1') }, 'present'],
    ['a volume that any node can reach may be used elsewhere since', { volumeName: 'pv' }, 'unknown'],
    ['so may one of the same zone', { volumeName: 'pv', ...on('topology.kubernetes.io/zone', 'x') }, 'unknown'],
  ])('%s', async (_, { volumeName, ...spec }: { volumeName?: string }, expected, selected = 'node-1') => {
    const world = modelWorld();
    putInCache(world.nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, status: notReady });
    putInCache(world.nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-2', labels: { [HOST]: 'node-2' } },
    });
    putInCache(world.members, member(1));
    const { metadata } = podOf(1);
    const annotations = { 'volume.kubernetes.io/selected-node': selected };
    const claim = { ...aVolume(), metadata: { ...metadata, name: volumeClaimName(nameOf(1)), annotations } };
    putInCache(world.volumes, { ...claim, spec: volumeName === undefined ? {} : { volumeName } });
    await world.client.create(persistentVolumes, volume(spec));
    expect((await look(world)).node.is).toBe(expected);
  });
});

test('while no Secret can be read, a member is still observed, and a lost Pod is recreated', async () => {
  const world = modelWorld(failingReads(500, 'secrets'));
  await runningCluster(world, 3);
  const [cached] = world.clusters.all();
  if (!cached) throw new Error('there is one');
  const managed = { client: { managed: {} }, peer: { managed: {} } };
  putInCache(world.clusters, { ...cached, spec: { ...cached.spec, tls: managed } });
  expect((await look(world)).etcd.is).toBe('answers');
  leaving(world, 2);
  expect((await look(world, 2)).peers.is).toBe('answer');
  world.pods.apply('', { type: 'delete', object: podOf(3) });
  await world.client.create(persistentVolumeClaims, {
    ...aVolume(),
    metadata: {
      ...aVolume().metadata,
      name: volumeClaimName(nameOf(3)),
      ownerReferences: podOf(3).metadata.ownerReferences ?? [],
    },
  });
  const { steps } = decide(await look(world, 3));
  expect(steps.map((step) => step.do === 'create' && step.object.kind)).toEqual(['Pod']);
});
