/** A leader that is about to stop, in a world without other faults: leadership is transferred while it still serves. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { pods } from '../../src/kube/resources.ts';
import { judged, peace } from './run.ts';
import { groupOf } from './world/facts.ts';
import { refTo } from './world/ground.ts';
import type { Run } from './world/pod-run.ts';
import type { World } from './world/world.ts';

const SPEC = { replicas: 3, version: '3.6.16', storage: { size: '1Gi' } };
const leading = (world: World): Run | undefined =>
  [...world.kubelet.runs.values()].find(({ process }) => process?.disk?.id === groupOf(world)?.leader);

test.each<[string, (world: World, leader: Run) => void]>([
  [
    'its Pod is deleted',
    (world, { name }) => {
      const pod = world.ground.find(pods, name);
      if (pod) world.ground.write((api) => api.delete(pods, refTo(pod), { uid: pod.metadata.uid ?? '' }));
    },
  ],
  [
    'its node is cordoned',
    (world, { node }) => {
      const found = world.nodes.get(node);
      if (found) world.nodes.cordon(found, true);
    },
  ],
])('the members always have a leader, and soon another one, when %s', async (_, stop) => {
  for (let seed = 1; seed <= 5; seed++) {
    const { broken, story } = await judged(
      { seed, nodes: 4, localVolumes: false, tellStory: true },
      false,
      async (world, judge) => {
        const { timeline } = world.ground;
        world.createCluster(SPEC);
        await peace(world, judge);
        const before = leading(world);
        if (!before) throw new Error('there is no leader');
        stop(world, before);
        await setImmediate(); // the watches of the operator receive it
        const until = timeline.now + 5_000;
        while (await world.step(until)) expect(groupOf(world)?.leader).toBeDefined();
        expect(leading(world)).toBeDefined();
        expect(leading(world)?.name).not.toBe(before.name);
        await peace(world, judge);
        expect(world.ground.tally.get('leadership handed over')).toBe(1);
      },
    );
    expect(broken, story.join('\n')).toBeUndefined();
  }
});
