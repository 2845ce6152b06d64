/** Which EtcdMembers a reconcile counts: those without an owner too, and those that the cache lacks before a loss is concluded. */

import { expect, test, vi } from 'vitest';
import { aVolume, condition } from '../../../test/support/builders/builders.ts';
import { rowsOf } from '../../../test/support/builders/plan.ts';
import {
  type ModelWorld,
  member,
  modelWorld,
  nameOf,
  podOf,
  putInCache,
  runningCluster,
} from '../../../test/support/builders/ports.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdMember, EVIDENCE } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, memberLabels } from '../../api/names.ts';
import { ALL_NAMESPACES } from '../../kube/store.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { clientService, headlessService, pdb } from './build.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import { type Gathered, seedName } from './observed.ts';

const { signal } = new AbortController();

async function observed(world: ModelWorld): Promise<Gathered> {
  const found = await observe(world, 'ns/db', signal, NO_MEMORY);
  if (!found) throw new Error('there is no cluster');
  return found;
}

const tokenOf = (world: ModelWorld): string => [...world.clusters.all()][0]?.status?.clusterToken ?? '';
/** As etcd-migrate creates it. */
const unowned = (world: ModelWorld, n: number, clusterToken = tokenOf(world)): EtcdMember => {
  const made = member(n, { spec: { clusterToken }, status: { isVoter: true } });
  const { ownerReferences: _, ...metadata } = made.metadata;
  return { ...made, metadata: { ...metadata, labels: memberLabels('db', nameOf(n)) } };
};
const namesIn = (o: Gathered): readonly string[] =>
  o.members.map(({ object }) => object.metadata.name ?? '').toSorted();
const forget = (world: ModelWorld, ...numbers: readonly number[]): void => {
  for (const n of numbers) world.members.apply(ALL_NAMESPACES, { type: 'delete', object: member(n) });
};
const store = (world: ModelWorld, object: EtcdMember): Promise<EtcdMember> => {
  const { uid: _, resourceVersion: _v, ...metadata } = object.metadata;
  return world.client.create(world.members.resource, { ...object, metadata });
};

test('members without an owner count, and are asked; those of another token do not', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  putInCache(world.members, unowned(world, 1), unowned(world, 2), unowned(world, 3), unowned(world, 4, 'another'));
  const o = await observed(world);
  expect(namesIn(o)).toEqual([1, 2, 3].map(nameOf).toSorted());
  expect(o.members.every(({ self }) => self !== undefined)).toBe(true);
  expect(rowsOf(decide(o))).toContain('adoptMembers');
});

test('before a member is adopted, the API server is asked whether the cluster still exists', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cached] = world.clusters.all();
  if (!cached) throw new Error('there is one');
  putInCache(world.members, unowned(world, 1));
  putInCache(world.services, headlessService(cached), clientService(cached));
  putInCache(world.pdbs, pdb(cached, 1));
  const { uid = '' } = cached.metadata;
  await world.client.delete(world.clusters.resource, { namespace: 'ns', name: 'db' }, { uid });
  expect(await observe(world, 'ns/db', signal, NO_MEMORY)).toBeUndefined();
  const { status: _, ...unrecorded } = cached;
  putInCache(world.clusters, unrecorded);
  expect(await observe(world, 'ns/db', signal, NO_MEMORY)).toBeUndefined();
});

test('before a member is removed by scaling down, the API server is asked whether replicas was raised again', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  const ref = { namespace: 'ns', name: 'db' };
  const stored = await world.client.patch(world.clusters.resource, ref, { spec: { replicas: 3 } });
  const stale = { ...stored, spec: { ...stored.spec, replicas: 1 } };
  putInCache(world.clusters, stale);
  putInCache(world.services, headlessService(stale), clientService(stale));
  putInCache(world.pdbs, pdb(stale, 1));
  const o = await observed(world);
  expect([o.cluster.spec.replicas, decide(o).rule === 'shrink']).toEqual([3, false]);
});

test('a seed without an owner is the seed of its cluster', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cluster] = world.clusters.all();
  const { seed } = await observed(world);
  expect(seed.is).toBe('absent'); // the uid of the stored cluster gives other names
  const name = seedName(cluster as EtcdCluster);
  const made = unowned(world, 1);
  putInCache(world.members, { ...made, metadata: { ...made.metadata, name } });
  expect((await observed(world)).seed.is).toBe('ours');
});

test('the cache lacks the seed of a cluster without an ID: the API server is asked before another one is created', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cluster] = world.clusters.all();
  forget(world, 1);
  const ref = { namespace: 'ns', name: 'db' };
  const fields = { status: { clusterID: null, membersNamed: 2 } };
  putInCache(world.clusters, await world.client.patch(world.clusters.resource, ref, fields, { subresource: 'status' }));
  await store(world, member(1, {}, cluster?.metadata.uid));
  expect(namesIn(await observed(world))).toEqual([nameOf(1)]);
});

test('a member without labels is a member: its owner counts', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  const [cluster] = world.clusters.all();
  const { labels: _, ...metadata } = member(2, {}, cluster?.metadata.uid).metadata;
  putInCache(world.members, { ...member(2, { status: { isVoter: true } }, cluster?.metadata.uid), metadata });
  const get = vi.spyOn(world.client, 'pages');
  expect(namesIn(await observed(world))).toEqual([1, 2, 3].map(nameOf).toSorted());
  expect(get).not.toHaveBeenCalled();
});

test('a cluster whose members the cache lacks is not lost: the API server is asked', async () => {
  const world = modelWorld();
  await runningCluster(world, 2);
  const [cluster] = world.clusters.all();
  forget(world, 1, 2);
  const { labels: _, ...unlabelled } = member(1, {}, cluster?.metadata.uid).metadata;
  await store(world, { ...member(1, {}, cluster?.metadata.uid), metadata: unlabelled });
  await store(world, unowned(world, 2));
  await store(world, member(3, {}, 'another'));
  const o = await observed(world);
  expect([namesIn(o), o.leftVolumes]).toEqual([[nameOf(1), nameOf(2)].toSorted(), undefined]);
});

test.each(['DataLost', 'DataInvalid'])(
  'members that the cache lacks may have the data that all others lack (%s)',
  async (reason) => {
    const world = modelWorld();
    await runningCluster(world, 2);
    const [cluster] = world.clusters.all();
    const conditions = [condition('Ready', 'False', reason)];
    world.pods.apply(ALL_NAMESPACES, { type: 'delete', object: podOf(1) });
    putInCache(world.members, member(1, { status: { isVoter: true, conditions } }, cluster?.metadata.uid));
    forget(world, 2);
    await store(world, member(1, {}, cluster?.metadata.uid));
    await store(world, member(2, {}, cluster?.metadata.uid));
    expect(namesIn(await observed(world))).toEqual([nameOf(1), nameOf(2)].toSorted());
  },
);

test('when no EtcdMember is left, the PVCs and Pods that are left are named', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  forget(world, 1);
  const labels = { [CLUSTER_LABEL]: 'db' };
  putInCache(world.volumes, { ...aVolume(), metadata: { ...aVolume().metadata, name: 'data-x', labels } });
  const o = await observed(world);
  expect([o.members, o.leftVolumes, o.leftPods]).toEqual([[], ['data-x'], [nameOf(1)]]);
});

test('a member with failure evidence is read from the API server: its status changes with every crash', async () => {
  const world = modelWorld();
  await runningCluster(world, 2);
  const status = { conditions: [condition('Ready', 'False', EVIDENCE.dataInvalid)] };
  const lost = member(2, { status }, [...world.clusters.all()][0]?.metadata.uid);
  const stored = await store(world, lost);
  const { uid = '' } = stored.metadata;
  const read = async (cachedUid: string) => {
    const cached = { ...lost, metadata: { ...lost.metadata, uid: cachedUid, resourceVersion: '1' } };
    putInCache(world.members, cached);
    world.pods.apply(ALL_NAMESPACES, { type: 'delete', object: podOf(2) });
    const found = (await observed(world)).members.find(({ object }) => object.metadata.name === nameOf(2));
    return found?.object.metadata.resourceVersion;
  };
  expect(await read(uid)).toBe(stored.metadata.resourceVersion);
  expect(await read('of a previous member'), 'not another member of this name').toBe('1');
});
