/** Applies the actions of a script. An action that is impossible in the current state is skipped and not counted. */
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { Scene } from '../invariants.ts';
import type { Action, ActionKind } from '../script.ts';
import { groupOf, intactVoters, needed } from '../world/facts.ts';
import { credentialDeeds } from './credentials.ts';
import { defragDeeds } from './defragmentation.ts';
import { editDeeds } from './edits.ts';
import { machineDeeds, recover } from './machines.ts';
import { objectDeeds, removeForeign, removeOrphans } from './objects.ts';
import { killOperator, processDeeds } from './processes.ts';
import { spaceDeeds } from './space.ts';
import type { Deeds, Stage } from './stage.ts';

const DEEDS: Deeds<ActionKind> = {
  ...processDeeds,
  ...objectDeeds,
  ...machineDeeds,
  ...credentialDeeds,
  ...defragDeeds,
  ...spaceDeeds,
  ...editDeeds,
};

/** How long a user waits for the operator before restoring a deleted Secret. */
const RESTORED_MS = 10 * 60_000;

export class Faults {
  readonly #stage: Stage;

  constructor(scene: Scene, spec: EtcdCluster['spec']) {
    const none = { killAfterSteps: undefined, killAtCall: undefined };
    this.#stage = { scene, world: scene.world, spec, ...none, undo: new Set(), crashes: new Map() };
  }

  apply(action: Action): void {
    const { ground } = this.#stage.world;
    const deed = DEEDS[action.do] as (stage: Stage, action: Action) => boolean;
    ground.tell(() => `*** ${JSON.stringify(action)}`);
    if (deed(this.#stage, action)) ground.count(action.do === 'crash' ? `crash: ${action.how}` : action.do);
    else ground.tell(() => '*** skipped: impossible in the current state');
    this.#judgeDisks();
  }

  /** Whether enough disks were destroyed that data loss is no longer the operator's fault. */
  #judgeDisks(): void {
    const { world, scene } = this.#stage;
    const group = groupOf(world);
    if (group && intactVoters(world, group) < needed(group)) scene.dataExcused = true;
  }

  /** Runs at every step: kills that are due, and processes that crash again as soon as they start. */
  everyStep(): void {
    const { world, crashes, killAtCall } = this.#stage;
    if (killAtCall && (world.credentials?.calls ?? 0) >= killAtCall.call) {
      this.#stage.killAfterSteps ??= killAtCall.steps;
      this.#stage.killAtCall = undefined;
      world.ground.count('killed at a Secret');
    }
    if (this.#stage.killAfterSteps !== undefined && --this.#stage.killAfterSteps <= 0) {
      this.#stage.killAfterSteps = undefined;
      killOperator(this.#stage);
    }
    for (const [uid, crash] of crashes) {
      const run = world.kubelet.runs.get(uid);
      if (run?.state !== 'running') continue;
      world.kubelet.kill(run, crash.how);
      if (--crash.left <= 0) crashes.delete(uid);
    }
  }

  /** Ends every fault that can end. Destroyed disks stay destroyed. */
  heal(): void {
    const { world, crashes } = this.#stage;
    const { nodes, watches, etcd } = world;
    world.ground.timeline.operatorsAheadMs = 0;
    world.apiNetwork.heal();
    world.etcdNetwork.heal();
    world.ground.podsRefused = { since: 0, until: 0 };
    watches.heldUntil.clear();
    watches.mergeUntil = watches.unreadableUntil = 0;
    if (world.credentials) {
      world.credentials.touchedAt = world.ground.timeline.now;
      world.ground.timeline.after(RESTORED_MS, () => world.credentials?.restore(world.cluster));
    }
    crashes.clear();
    etcd.onJoin = undefined;
    for (const undo of this.#stage.undo) undo();
    for (const node of nodes.all) recover(world, node);
    for (const node of etcd.nodes) {
      node.stalled = false;
      if (node.isolated) etcd.isolate(node, false);
    }
    removeForeign(world);
    removeOrphans(world);
    this.#stage.killAfterSteps = this.#stage.killAtCall = undefined;
    if (!world.operators.some(({ dead }) => !dead)) world.startOperator();
  }
}
