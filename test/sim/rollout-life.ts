/** What tests of rollouts share: a world that lives on under the invariants, and what users do to its cluster. */
import { expect } from 'vitest';
import type { EtcdCluster, EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import { etcdClusters } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods } from '../../src/kube/resources.ts';
import { type Judge, judged, peace } from './run.ts';
import { NAMESPACE } from './world/ground.ts';
import { CLUSTER, type World } from './world/world.ts';

export const spec = (change: Partial<EtcdClusterSpec> = {}): EtcdCluster['spec'] => ({
  replicas: 3,
  version: '3.6.16',
  storage: { size: '1Gi', medium: '' },
  ...change,
});
export type Patch = { readonly [Field in keyof EtcdClusterSpec]?: EtcdClusterSpec[Field] | null };

export const edit = (world: World, patch: Patch): void =>
  world.ground.patch(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, { spec: patch });

export const deletePod = ({ ground }: World, name: string): void => {
  const uid = ground.find(pods, name)?.metadata.uid ?? '';
  ground.write((api) => api.delete(pods, { namespace: NAMESPACE, name }, { uid }));
};

export const progress = ({ cluster }: World) => findCondition(cluster?.status?.conditions, 'Progressing');

/** Lets the world live on until then, under the invariants. */
export async function until(world: World, judge: Judge, is: () => boolean, ms: number): Promise<void> {
  const { timeline } = world.ground;
  const end = timeline.now + ms;
  while (!is()) {
    if (timeline.now >= end) throw new Error(`still ${JSON.stringify(progress(world))}`);
    const at = Math.min(timeline.now + 1_000, end);
    if (!(await world.step(at))) timeline.now = at;
    judge.always();
  }
}

export const passes = async (world: World, judge: Judge, ms: number): Promise<void> => {
  const end = world.ground.timeline.now + ms;
  await until(world, judge, () => world.ground.timeline.now >= end, ms + 1_000);
};

export const deletedPods = ({ writes }: Judge): readonly string[] =>
  writes.flatMap((write) => /^delete Pod (.+)/.exec(write)?.[1] ?? []);

export async function life(
  start: EtcdCluster['spec'],
  living: (world: World, judge: Judge) => Promise<void>,
  seeds = 3,
): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    const { broken, story } = await judged(
      { seed, nodes: 4, localVolumes: false, tellStory: true },
      false,
      async (world, judge) => {
        world.createCluster(start);
        await peace(world, judge);
        judge.writes.length = 0;
        await living(world, judge);
      },
    );
    expect(broken, story.join('\n')).toBeUndefined();
  }
}

export const MEMORY = { size: '1Gi', medium: 'Memory' } as const;

export const LITTLE = '10Mi';

/** etcd is killed when it needs more memory than this limit: this long after it has started. */
export function starve(world: World, afterMs: number): void {
  const { ground, kubelet } = world;
  const step = world.step.bind(world);
  world.step = async (until) => {
    const stepped = await step(until);
    for (const run of kubelet.runs.values()) {
      const [etcd] = ground.find(pods, run.name)?.spec?.containers ?? [];
      const isStarving = etcd?.resources?.limits?.['memory'] === LITTLE && run.state === 'running';
      if (isStarving && ground.timeline.now - run.startedAt >= afterMs)
        kubelet.kill(run, { exitCode: 137, reason: 'OOMKilled', message: '' });
    }
    return stepped;
  };
}
