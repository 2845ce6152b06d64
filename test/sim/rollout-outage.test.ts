/** No member serves: the edit that ends the outage must reach enough of them for a quorum, although none is ready with it alone. */
import { describe, expect, test } from 'vitest';
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { pods } from '../../src/kube/resources.ts';
import {
  deletedPods,
  deletePod,
  edit,
  LITTLE,
  life,
  type Patch,
  passes,
  progress,
  spec,
  starve,
  until,
} from './rollout-life.ts';
import { peace } from './run.ts';
import { membersOf } from './world/facts.ts';
import type { World } from './world/world.ts';

const deleteAllPods = (world: World): void => {
  for (const { metadata } of world.ground.api.peek(pods)) deletePod(world, metadata.name ?? '');
};

const none = ({ cluster }: World): boolean => cluster?.status?.readyMembers === 0;

const OUTAGES: readonly (readonly [string, EtcdCluster['spec'], Patch, Patch])[] = [
  ['no node suits the Pods of three', spec(), { nodeSelector: { disk: 'none' } }, { nodeSelector: null }],
  ['no node suits the Pods of five', spec({ replicas: 5 }), { nodeSelector: { disk: 'none' } }, { nodeSelector: null }],
  ['etcd is killed for its memory', spec(), { resources: { limits: { memory: LITTLE } } }, { resources: null }],
];

describe('all Pods are deleted, and cannot run:', () => {
  test.each(OUTAGES)('%s, and the edit that mends it reaches all members', async (_, start, wrong, right) => {
    await life(
      start,
      async (world, judge) => {
        starve(world, 2_000);
        edit(world, { ...wrong, updateStrategy: { type: 'OnDelete' } });
        await passes(world, judge, 60_000);
        deleteAllPods(world);
        await until(world, judge, () => none(world), 120_000);
        await passes(world, judge, 60_000);
        edit(world, { ...right, updateStrategy: null });
        await until(world, judge, () => progress(world)?.reason === 'Reconciled', 300_000);
        await peace(world, judge);
        expect(world.cluster?.status?.readyMembers).toBe(start.replicas);
      },
      2,
    );
  });

  test('an edit that does not mend it is tried by one member only', async () => {
    await life(
      spec({ progressDeadlineSeconds: 300 }),
      async (world, judge) => {
        edit(world, { nodeSelector: { disk: 'none' }, updateStrategy: { type: 'OnDelete' } });
        await passes(world, judge, 60_000);
        deleteAllPods(world);
        await until(world, judge, () => none(world), 120_000);
        judge.writes.length = 0;
        edit(world, { nodeSelector: null, extraArgs: ['--nonsense=1'], updateStrategy: null });
        await passes(world, judge, 240_000);
        expect(membersOf(world).filter(({ spec: { extraArgs } }) => extraArgs !== undefined)).toHaveLength(1);
        expect(new Set(deletedPods(judge)).size).toBe(1);
        edit(world, { extraArgs: null });
        await peace(world, judge);
        expect(progress(world)?.reason).toBe('Reconciled');
      },
      2,
    );
  });
});
