/** A database that reaches its quota, in a world without other faults; `defragmentation.test.ts` has them. */
import { expect, test } from 'vitest';
import { findCondition } from '../../src/domain/conditions.ts';
import { outgrow, QUOTA } from './faults/space.ts';
import { judged, peace } from './run.ts';
import { groupOf } from './world/facts.ts';
import type { World } from './world/world.ts';

const SPEC = {
  replicas: 3,
  version: '3.6.16',
  storage: { size: '1Gi' },
  options: { quotaBackendBytes: QUOTA },
} as const;
const REMEDY = { autoRemedy: { enabled: true, keepRevisions: 3 } };

const isFull = (world: World): boolean =>
  groupOf(world)?.state.alarms.all.some(({ alarm }) => alarm === 'noSpace') ?? false;

async function untilFull(world: World): Promise<void> {
  outgrow(world);
  const until = world.ground.timeline.now + 60_000;
  while (!isFull(world)) if (!(await world.step(until))) throw new Error('the alarm was not raised');
}

async function inWorlds(
  spec: object,
  living: (world: World, rest: () => Promise<void>) => Promise<void>,
): Promise<void> {
  for (let seed = 1; seed <= 3; seed++) {
    const options = { seed, nodes: 4, localVolumes: false, tellStory: true };
    const { broken, story } = await judged(options, false, async (world, judge) => {
      world.createCluster({ ...SPEC, ...spec });
      const until = world.ground.timeline.now + 10 * 60_000;
      while (world.cluster?.status?.readyMembers !== 3) if (!(await world.step(until))) throw new Error('not ready');
      await untilFull(world);
      await living(world, () => peace(world, judge));
    });
    expect(broken, story.join('\n')).toBeUndefined();
  }
}

test('with autoRemedy etcd accepts writes again, and the status says what was done', async () => {
  await inWorlds({ maintenance: REMEDY }, async (world, rest) => {
    const before = world.writer.acknowledged.length;
    await rest();
    expect(isFull(world)).toBe(false);
    expect(world.writer.acknowledged.length).toBeGreaterThan(before);
    const { remedy, conditions } = world.cluster?.status ?? {};
    expect(remedy).toMatchObject({
      result: 'Remedied',
      message: expect.stringMatching(/^compacted up to revision \d+, /),
    });
    expect(findCondition(conditions, 'Degraded')?.reason).toBe('QuorumHealthy');
  });
});

test('without it the operator compacts nothing, and the condition has the commands', async () => {
  await inWorlds({}, async (world, rest) => {
    const before = groupOf(world)?.state.keys.compacted;
    await rest();
    expect([isFull(world), groupOf(world)?.state.keys.compacted]).toEqual([true, before]);
    expect(findCondition(world.cluster?.status?.conditions, 'Degraded')?.message).toContain('kubectl etcd compact');
  });
});
