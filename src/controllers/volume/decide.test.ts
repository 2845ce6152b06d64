/** PVCs whose cluster was deleted while no operator ran, and with it the deletionPolicy. */
import { expect, test } from 'vitest';
import { aCluster, aMember, aVolume, NOW, SEED_NAME } from '../../../test/support/builders/builders.ts';
import { modelWorld, putInCache } from '../../../test/support/builders/ports.ts';
import { QUARANTINE_LABEL, QUARANTINED_AT_ANNOTATION, type Quarantine } from '../../api/names.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { wireVolume } from './controller.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';

const HOUR = 60 * 60_000;
const quarantined = (
  hours: number,
  reason: Quarantine = 'policy-unknown',
  more: object = {},
): PersistentVolumeClaim => {
  const made = aVolume();
  const labels = { ...made.metadata.labels, [QUARANTINE_LABEL]: reason };
  const annotations = { [QUARANTINED_AT_ANNOTATION]: new Date(NOW - hours * HOUR).toISOString() };
  return { ...made, metadata: { ...made.metadata, labels, annotations, resourceVersion: '5', ...more } };
};
async function planFor(pvc: PersistentVolumeClaim, hasMember = false, clockAheadMs = 0) {
  const world = { ...modelWorld(), clockAheadMs: () => clockAheadMs };
  putInCache(world.volumes, pvc);
  if (hasMember) putInCache(world.members, { ...aMember(), metadata: { ...aMember().metadata, name: SEED_NAME } });
  const observed = await observe(world, `ns/${pvc.metadata.name}`);
  return observed && decide(observed);
}

test('the PVC is kept for a day', async () => {
  const plan = await planFor(quarantined(23.5));
  expect([plan?.rule, plan?.steps, plan?.requeueAfterMs]).toEqual(['keep', [], 0.5 * HOUR]);
  expect((await planFor(quarantined(1)))?.requeueAfterMs).toBe(HOUR); // the wall clock may be set forward
});

test('after a day exactly this PVC is deleted', async () => {
  const { name, namespace, uid } = aVolume().metadata;
  const what = { kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion: '5' };
  expect((await planFor(quarantined(24)))?.steps).toEqual([{ do: 'delete', what }]);
});

test.each<[string, PersistentVolumeClaim, boolean]>([
  ['its member still exists', quarantined(25), true],
  ['it is being deleted', quarantined(25, 'policy-unknown', { deletionTimestamp: 'now' }), false],
  ['the time was removed', quarantined(25, 'policy-unknown', { annotations: {} }), false],
])('it is not deleted after a day when %s', async (_, pvc, hasMember) => {
  expect((await planFor(pvc, hasMember))?.steps).toEqual([]);
});

test('a wall clock that jumps ahead by a day ends no quarantine', async () => {
  const plan = await planFor(quarantined(47.5), false, 24 * HOUR);
  expect([plan?.rule, plan?.requeueAfterMs]).toEqual(['keep', 0.5 * HOUR]);
});

test('PVCs that are retained are kept for ever, and so is one without a label', async () => {
  expect(await planFor(quarantined(1_000, 'cluster-deleted'))).toBeUndefined();
  expect(await planFor(quarantined(1_000, 'member-removed'))).toBeUndefined();
  expect(await planFor(aVolume())).toBeUndefined();
});

test('the PVC of a replaced member is deleted after a day when its cluster is gone; otherwise its cluster decides', async () => {
  const world = modelWorld();
  putInCache(world.volumes, quarantined(24, 'member-replaced'));
  const plan = async () => {
    const observed = await observe(world, `ns/${aVolume().metadata.name}`);
    return observed && decide(observed).rule;
  };
  expect(await plan()).toBe('expire');
  const keys: string[] = [];
  wireVolume(world, (key) => keys.push(key));
  putInCache(world.clusters, aCluster());
  expect(await plan()).toBe('keep');
  world.clusters.apply('', { type: 'delete', object: aCluster() });
  expect(keys).toEqual([`ns/${aVolume().metadata.name}`]);
});

test('only a PVC whose time runs is enqueued', () => {
  const world = modelWorld();
  const keys: string[] = [];
  wireVolume(world, (key) => keys.push(key));
  putInCache(world.volumes, aVolume());
  expect(keys).toEqual([]);
  putInCache(world.volumes, quarantined(0));
  expect(keys).toEqual([`ns/${aVolume().metadata.name}`]);
});
