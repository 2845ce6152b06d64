/** Faults of the operator process and its connections. */
import type { Deeds, Stage } from './stage.ts';

export function killOperator({ world }: Stage): void {
  const operator = world.operators.find(({ dead }) => !dead);
  if (!operator) return;
  world.ground.tell(() => `*** ${operator.name} is killed`);
  operator.kill();
  world.ground.count('operator killed');
  world.ground.soon(500, 5_000, () => void world.startOperator());
}

/** Freezes the process; a second replica takes over when the Lease expires; then the first one continues where it stopped. */
function freezeOperator({ world, scene }: Stage, ms: number): boolean {
  const { ground, actingOperator: operator } = world;
  if (!operator) return false;
  operator.freeze();
  scene.history.late(ms);
  const other = world.startOperator();
  ground.timeline.after(ms, () => {
    if (operator.dead) return;
    if (operator.thaw()) return other.kill();
    ground.count('operators overlapped');
    ground.soon(0, 2_000, () => operator.kill()); // it notices that the Lease is lost
  });
  return true;
}

export function holdWatch({ world, scene }: Stage, kind: string, ms: number): boolean {
  world.watches.heldUntil.set(kind, world.ground.timeline.now + ms);
  scene.history.late(ms);
  return true;
}

type Kinds =
  | 'killOperator'
  | 'freezeOperator'
  | 'jumpClock'
  | 'holdWatch'
  | 'mergeWatch'
  | 'breakWatches'
  | 'apiTrouble'
  | 'etcdTrouble';

export const processDeeds: Deeds<Kinds> = {
  killOperator: (stage, { steps }) => {
    stage.killAfterSteps ??= steps;
    return true;
  },
  freezeOperator: (stage, { ms }) => freezeOperator(stage, ms),
  jumpClock: ({ world }, { ms }) => {
    world.ground.timeline.operatorsAheadMs += ms;
    return true;
  },
  holdWatch: (stage, { kind, ms }) => holdWatch(stage, kind, ms),
  mergeWatch: ({ world }, { ms }) => {
    world.watches.mergeUntil = world.ground.timeline.now + ms;
    return true;
  },
  breakWatches: ({ world }, { how }) => {
    const open = [...world.watches.open];
    for (const stream of open) stream.end(how);
    return open.length > 0;
  },
  apiTrouble: ({ world, scene }, { kind, ms, percent }) => {
    world.apiNetwork.trouble(kind, ms, percent / 100);
    scene.history.late(ms + 30_000);
    return true;
  },
  etcdTrouble: ({ world }, { kind, ms, percent }) => {
    world.etcdNetwork.trouble(kind, ms, percent / 100);
    return true;
  },
};
