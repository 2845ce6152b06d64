/** What faults share: the world that they befall, and what of them is still to come. */
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { Scene } from '../invariants.ts';
import type { Action, ActionKind } from '../script.ts';
import type { Ending, Run } from '../world/pod-run.ts';
import type { World } from '../world/world.ts';

export interface Stage {
  readonly scene: Scene;
  readonly world: World;
  /** The spec that a cluster is created with again. */
  readonly spec: EtcdCluster['spec'];
  /** An operator is to die after so many further steps of the world. */
  killAfterSteps: number | undefined;
  /** What ends with the faults: a person puts a data directory back, late writes are over. */
  readonly undo: Set<() => void>;
  /** Pods whose etcd dies as soon as it starts, so many times more. */
  readonly crashes: Map<string, { readonly how: Ending; left: number }>;
}

/** How each kind befalls a world; false when it cannot happen at this moment. */
export type Deeds<Kind extends ActionKind> = {
  readonly [K in Kind]: (stage: Stage, action: Extract<Action, { readonly do: K }>) => boolean;
};

export const chosen = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];

export const runs = (world: World): readonly Run[] => [...world.kubelet.runs.values()];
export const running = (world: World): readonly Run[] =>
  runs(world).filter((run) => run.state === 'running' && run.process && world.nodes.isUp(run.node));
