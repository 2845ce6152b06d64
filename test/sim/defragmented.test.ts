/** A defragmentation that takes its time, in a world without other faults. */
import { expect, test } from 'vitest';
import type { EtcdDefrag } from '../../src/api/etcd-defrag.ts';
import { API_VERSION, etcdDefrags } from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { type Judge, judged, peace } from './run.ts';
import { NAMESPACE } from './world/ground.ts';
import { CLUSTER, type World } from './world/world.ts';

const SPEC = { replicas: 3, version: '3.6.16', storage: { size: '1Gi' } };
const defrags: Resource<EtcdDefrag> = etcdDefrags;
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
