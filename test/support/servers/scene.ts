/** An operator with its own namespace behind its own proxy, so that many of them can have faults at once. */
import { afterAll, afterEach, expect } from 'vitest';
import type { Passed } from '../faults/proxy.ts';
import { type Child, pause } from './processes.ts';
import { members, type World } from './world.ts';

type Proxy = Awaited<ReturnType<World['faultProxy']>>;

export interface Scene {
  readonly namespace: string;
  readonly proxy: Proxy;
  operator: Child;
  start(): void;
}

export interface Scenery {
  /** Faults that must exist from the start are arranged before the operator starts. */
  readonly aScene: (arrange?: (proxy: Proxy, scene: () => Scene) => void) => Promise<Scene>;
  readonly ends: (scene: Scene) => Promise<void>;
  /** The cluster exists, it has one seed, and the process that created it is still the first one. */
  readonly expectOneSeed: (scene: Scene) => Promise<void>;
}

/** For one test file: ends all its scenes afterwards, and a failed test prints the logs of its operators. */
export function scenery(world: () => World): Scenery {
  const scenes = new Set<Scene>();
  afterEach((context) => {
    if (context.task.result?.state === 'fail')
      for (const { operator } of scenes) process.stderr.write(operator.log().split('\n').slice(-40).join('\n'));
  });
  afterAll(async () => {
    await Promise.all([...scenes].map(({ operator }) => operator.stop('SIGKILL')));
  });
  return {
    aScene: async (arrange = () => undefined) => {
      const namespace = await world().namespace();
      const proxy = await world().faultProxy();
      const start = (): Child => world().startOperator(...proxy.flags, `--watch-namespace=${namespace}`);
      let scene: Scene | undefined;
      arrange(proxy, () => scene as Scene);
      scene = {
        namespace,
        proxy,
        operator: start(),
        start() {
          this.operator = start();
        },
      };
      scenes.add(scene);
      return scene;
    },
    ends: async (scene) => {
      await scene.operator.stop('SIGKILL');
      scenes.delete(scene);
    },
    expectOneSeed: async ({ namespace, proxy }) => {
      await world().patiently(80_000).condition(namespace, 'db', 'Available', 'True');
      const seeds = (await world().list(members, namespace)).filter((member) => member.spec.bootstrap);
      expect(seeds.map((seed) => seed.metadata.name).length).toBe(1);
      const made = proxy.calls.filter((c) => c.verb === 'create' && c.resource === 'etcdmembers' && c.code === 201);
      expect(made.length).toBeLessThanOrEqual(1);
    },
  };
}

export const writes = ({ proxy }: Scene): readonly Passed[] => proxy.calls.filter((call) => call.write);
export const named = (calls: readonly Passed[]): readonly string[] =>
  calls.map((c) => `${c.verb} ${c.resource} ${c.code}`);

export async function alive({ operator }: Scene): Promise<void> {
  const ended = await Promise.race([operator.ended.then(() => true), pause(1).then(() => false)]);
  expect(ended, operator.log().slice(-2_000)).toBe(false);
}
