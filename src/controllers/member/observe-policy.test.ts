/** Which deletionPolicy decides about the PVC of a member that is being deleted. */
import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED } from '../../../test/support/builders/builders.ts';
import { modelWorld, putInCache, storedCluster } from '../../../test/support/builders/ports.ts';
import { etcdClusters } from '../../api/names.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { observe } from './observe.ts';

async function aWorld() {
  const world = modelWorld();
  const cluster = await storedCluster(world, FORMED);
  const made = aMember({ deleting: true });
  const owners = (made.metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid: cluster.metadata.uid ?? '' }));
  putInCache(world.clusters, cluster);
  putInCache(world.members, { ...made, metadata: { ...made.metadata, ownerReferences: owners } });
  const ref = { namespace: 'ns', name: 'db' };
  const policy = async () =>
    (await observe(world, `ns/${made.metadata.name}`, AbortSignal.timeout(1_000), NO_MEMORY))?.policy;
  const remove = () => world.client.delete(etcdClusters, ref, { uid: cluster.metadata.uid ?? '' });
  const retain = { ...cluster, spec: { ...cluster.spec, deletionPolicy: 'Retain' as const } };
  const edit = () => world.client.patch(etcdClusters, ref, { spec: { deletionPolicy: 'Retain' } });
  return { ...world, cluster, retain, policy, remove, edit };
}

test('that of the cluster, as the API server has it: the cache may lack the last edit', async () => {
  const { policy, edit } = await aWorld();
  expect(await policy()).toBe('Delete');
  await edit();
  expect(await policy()).toBe('Retain');
});

test('after the deletion of the cluster, its last one: an edit just before the deletion counts', async () => {
  const { policy, remove, clusters, retain } = await aWorld();
  await remove();
  expect(await policy()).toBe('pending');
  clusters.apply('', { type: 'delete', object: retain });
  expect(await policy()).toBe('Retain');
});

test('unknown, when the cluster was edited and deleted while no operator ran, or its watch missed it', async () => {
  const { policy, remove, clusters } = await aWorld();
  await remove();
  clusters.apply('', { type: 'restart' });
  clusters.apply('', { type: 'synced', resourceVersion: '99' });
  expect(await policy()).toBeUndefined();
});

test('not that of another cluster of the same name', async () => {
  const { policy, remove, clusters, cluster } = await aWorld();
  await remove();
  clusters.apply('', { type: 'delete', object: aCluster({ spec: { deletionPolicy: 'Retain' } }) });
  expect(await policy()).toBeUndefined();
  expect(cluster.metadata.uid).not.toBe(aCluster().metadata.uid);
});
