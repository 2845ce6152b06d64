/** What all faults share: the world, and the faults that are still pending. */
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { Scene } from '../invariants.ts';
import type { Action, ActionKind } from '../script.ts';
import type { Ending, Run } from '../world/pod-run.ts';
import type { World } from '../world/world.ts';

export interface Stage {
  readonly scene: Scene;
  readonly world: World;
  /** The spec that a deleted cluster is created with again. */
  readonly spec: EtcdCluster['spec'];
  /** Kill an operator after this many further steps of the world. */
  killAfterSteps: number | undefined;
  /** Kill an operator this many steps after this call that concerns Secrets or passwords. */
  killAtCall: { readonly call: number; readonly steps: number } | undefined;
  /** What is undone when the faults end: a user restores a data directory, late writes stop. */
  readonly undo: Set<() => void>;
  /** Pods whose etcd crashes as soon as it starts, this many times more. */
  readonly crashes: Map<string, { readonly how: Ending; left: number }>;
}

/** An image repository that no operator allows. */
export const FORBIDDEN = 'forbidden.example.com/etcd';

/** How each kind of action is applied to a world; false when it is impossible at this moment. */
export type Deeds<Kind extends ActionKind> = {
  readonly [K in Kind]: (stage: Stage, action: Extract<Action, { readonly do: K }>) => boolean;
};

export const chosen = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];

export const runs = (world: World): readonly Run[] => [...world.kubelet.runs.values()];
export const running = (world: World): readonly Run[] =>
  runs(world).filter((run) => run.state === 'running' && run.process && world.nodes.isUp(run.node));
