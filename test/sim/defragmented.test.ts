/** A defragmentation that takes its time, in a world without other faults. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { EtcdDefrag } from '../../src/api/etcd-defrag.ts';
import type { EtcdMember } from '../../src/api/etcd-member.ts';
import { API_VERSION, etcdClusters, etcdDefrags, etcdMembers, ROLE_LABEL } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import type { Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import type { ModelNode } from './model/etcd.ts';
import { type Judge, judged, peace } from './run.ts';
import { groupOf, membersOf } from './world/facts.ts';
import { NAMESPACE, refTo } from './world/ground.ts';
import { CLUSTER, type World } from './world/world.ts';

const SPEC = { replicas: 3, version: '3.6.16', storage: { size: '1Gi' } };
const defrags: Resource<EtcdDefrag> = etcdDefrags;
const members: Resource<EtcdMember> = etcdMembers;
const MINUTE = 60_000;
const FREE_BYTES = 100 * 2 ** 20;

function defragment(world: World, name: string, ms: number): void {
  world.etcd.defragmentMs = () => ms;
  const metadata = { name, namespace: NAMESPACE };
  const spec = { clusterRef: { name: CLUSTER }, rule: { all: true } };
  world.ground.write((api) => api.create(defrags, { apiVersion: API_VERSION, kind: 'EtcdDefrag', metadata, spec }));
}
const outcomesOf = (world: World, name: string) => {
  const { phase, members: found = [] } = world.ground.find(defrags, name)?.status ?? {};
  return [phase, ...found.map(({ outcome, reclaimedBytes = 0 }) => `${outcome} ${reclaimedBytes > 0}`)];
};
const busyNode = (world: World): ModelNode | undefined =>
  world.etcd.nodes.find(({ running, defragmentsUntil }) => running && defragmentsUntil > 0);

/** Lets the world go on until etcd defragments a member. */
async function untilBusy(world: World): Promise<ModelNode> {
  const until = world.ground.timeline.now + 10 * MINUTE;
  for (;;) {
    const busy = busyNode(world);
    if (busy) return busy;
    if (!(await world.step(until))) throw new Error('no member was defragmented');
  }
}

async function inWorlds(living: (world: World, judge: Judge) => Promise<void>): Promise<void> {
  for (let seed = 1; seed <= 3; seed++) {
    const options = { seed, nodes: 4, localVolumes: false, tellStory: true };
    const { broken, story } = await judged(options, false, async (world, judge) => {
      world.createCluster(SPEC);
      await peace(world, judge);
      await living(world, judge);
    });
    expect(broken, story.join('\n')).toBeUndefined();
  }
}

test('one that takes a minute and has nothing to free is complete', async () => {
  await inWorlds(async (world, judge) => {
    for (const { disk } of world.etcd.nodes) if (disk) disk.dbSize += FREE_BYTES;
    defragment(world, 'first', MINUTE);
    await peace(world, judge);
    expect(outcomesOf(world, 'first')).toEqual(['Complete', ...Array(3).fill('Defragmented true')]);
    defragment(world, 'second', MINUTE);
    await peace(world, judge);
    expect(outcomesOf(world, 'second')).toEqual(['Complete', ...Array(3).fill('Defragmented false')]);
  });
});

test('a member that a user deletes meanwhile is removed when it has finished', async () => {
  await inWorlds(async (world, judge) => {
    defragment(world, 'first', MINUTE);
    const { name, defragmentsUntil: ends } = await untilBusy(world);
    const object = world.ground.find(members, name);
    if (!object) throw new Error('the member has no EtcdMember');
    world.ground.write((api) => api.delete(members, refTo(object), { uid: object.metadata.uid ?? '' }));
    await setImmediate();
    const isListed = (): boolean => [...(groupOf(world)?.members.values() ?? [])].some((entry) => entry.name === name);
    while (await world.step(ends)) expect(isListed()).toBe(true);
    await peace(world, judge);
    expect(isListed()).toBe(false);
    expect(outcomesOf(world, 'first').at(0)).toBe('Complete');
  });
});

test('a member is not restarted for an edit before it has finished', async () => {
  await inWorlds(async (world, judge) => {
    defragment(world, 'first', MINUTE);
    const node = await untilBusy(world);
    const { startedAt, defragmentsUntil: ends } = node;
    const at = { namespace: NAMESPACE, name: CLUSTER };
    const edit = { spec: { options: { quotaBackendBytes: 300 * 2 ** 20 } } };
    world.ground.write((api) => api.patch(etcdClusters, at, edit));
    await setImmediate();
    while (await world.step(ends)) expect([node.running, node.startedAt]).toEqual([true, startedAt]);
    await peace(world, judge);
    expect(outcomesOf(world, 'first').at(0)).toBe('Complete');
  });
});

test('without a field for the marker no member is defragmented, until the CRDs have it', async () => {
  await inWorlds(async (world, judge) => {
    const { ground } = world;
    ground.unknownFields.set('EtcdCluster', ['defragmentation']);
    defragment(world, 'first', 1_000);
    await setImmediate();
    const until = ground.timeline.now + 5 * MINUTE;
    while (await world.step(until)) expect(busyNode(world)).toBeUndefined();
    const {
      status: is,
      reason,
      message,
    } = findCondition(ground.find(defrags, 'first')?.status?.conditions, 'DefragChecked') ?? {};
    expect([is, reason, message]).toEqual(['False', 'ClusterNotHealthy', expect.stringMatching(/CRDs are older/)]);
    expect(
      membersOf(world).filter(
        ({ metadata: { name = '' } }) => world.ground.find(pods, name)?.metadata.labels?.[ROLE_LABEL] === undefined,
      ),
    ).toEqual([]);
    expect(findCondition(world.cluster?.status?.conditions, 'CRDsCurrent')?.message).toMatch(/status.defragmentation/);
    ground.unknownFields.clear();
    await peace(world, judge);
    expect(outcomesOf(world, 'first').at(0)).toBe('Complete');
    expect(findCondition(world.cluster?.status?.conditions, 'CRDsCurrent')).toBeUndefined();
  });
});
