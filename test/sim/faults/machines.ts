/** Faults of processes, disks, nodes and the network between members. */

import { pods } from '../../../src/kube/resources.ts';
import type { ModelNode } from '../model/etcd.ts';
import { voters } from '../model/etcd-group.ts';
import { needed, reachableVoters } from '../world/facts.ts';
import { refTo } from '../world/ground.ts';
import type { NodeState } from '../world/nodes.ts';
import { type Ending, ORDINARY_LINES, type Run } from '../world/pod-run.ts';
import type { World } from '../world/world.ts';
import { chosen, type Deeds, running, type Stage } from './stage.ts';

const KILLED: Ending = { exitCode: 137, reason: 'Error', message: ORDINARY_LINES };
const OOM: Ending = { ...KILLED, reason: 'OOMKilled' };
/** A failed liveness probe: as PID 1 of its container, etcd exits with 0, or with 2 before it serves. */
const PROBED: Ending = { exitCode: 2, reason: 'Error', message: ORDINARY_LINES };
const CRASHES: Readonly<Record<'killed' | 'oom' | 'probed', Ending>> = { killed: KILLED, oom: OOM, probed: PROBED };

export function recover({ nodes, kubelet }: World, node: NodeState): void {
  if (node.state === 'up' || node.state === 'gone') return;
  const was = node.state;
  nodes.recover(node);
  if (was === 'cutOff') kubelet.isolate(node.name, false);
  kubelet.resume(node.name);
}

/** One node always stays up: a world without nodes proves nothing. */
function breakNode(world: World, n: number, how: 'off' | 'cutOff'): NodeState | undefined {
  const { nodes, kubelet } = world;
  const up = nodes.all.filter(({ state }) => state === 'up');
  const node = up.length < 2 ? undefined : chosen(up, n);
  if (!node) return undefined;
  if (how === 'cutOff') kubelet.isolate(node.name, true);
  else kubelet.powerOff(node.name);
  nodes.fail(node, how);
  return node;
}

function breakForAWhile(world: World, n: number, how: 'off' | 'cutOff', ms: number): boolean {
  const node = breakNode(world, n, how);
  if (node) world.ground.timeline.after(ms, () => recover(world, node));
  return node !== undefined;
}

/** Kills the process, then damages its data directory. */
function breakVolume(world: World, n: number, how: (run: Run) => void): boolean {
  const run = chosen(
    running(world).filter(({ volume }) => volume.disk),
    n,
  );
  if (!run) return false;
  world.kubelet.kill(run, KILLED);
  how(run);
  return true;
}

/** The member's keys differ from its peers'; the leader's periodic corruption check raises an alarm. */
function corrupt({ ground }: World, process: ModelNode | undefined, ms: number): boolean {
  const { disk } = process ?? {};
  if (!disk || voters(disk.group).length < 3 || disk.group.members.get(disk.id)?.isLearner !== false) return false;
  disk.corrupted = true;
  ground.timeline.after(ms, () => {
    if (disk.group.leader === undefined || !disk.group.members.has(disk.id)) return;
    disk.group.commit(({ alarms }) => alarms.raise({ memberId: disk.id, alarm: 'corrupt' }));
    ground.count('alarm: corrupt');
  });
  return true;
}

/** An operator may act on what such a member reported for this long afterwards. */
const BELIEVED_MS = 60_000;

/**
 * A user starts one member with --force-new-cluster: it becomes a single-member cluster under the same id and drops the
 * other members. After a while the user notices the mistake and restores the data directory.
 */
function forceNew({ world, scene, undo }: Stage, n: number, ms: number): boolean {
  const { etcd, kubelet, ground } = world;
  const isVoterOfMany = ({ process }: Run): boolean => {
    const { group, id } = process?.disk ?? {};
    if (!group || voters(group).length < 3 || group.members.get(id ?? 0n)?.isLearner !== false) return false;
    // Without a quorum of the others this is no mistake but disaster recovery, and the operator continues with the result.
    return reachableVoters(world, group) > needed(group);
  };
  const run = chosen(running(world).filter(isVoterOfMany), n);
  const { volume, process } = run ?? {};
  const before = volume?.disk;
  if (!run || !volume || !process || !before) return false;
  etcd.forceNew(process);
  const { disk: forced } = process;
  volume.disk = forced;
  scene.usurpedUntil = Number.POSITIVE_INFINITY;
  const takeBack = (): void => {
    if (!undo.delete(takeBack)) return;
    scene.usurpedUntil = ground.timeline.now + BELIEVED_MS;
    if (volume.destroyed || volume.disk !== forced) return;
    volume.disk = before;
    for (const each of kubelet.runs.values()) if (each.volume === volume) kubelet.kill(each, KILLED);
  };
  undo.add(takeBack);
  ground.timeline.after(ms, takeBack);
  return true;
}

/**
 * A node loses power, and the next Pod that starts gets the IP of a Pod on it: the Pod of another member, which is
 * deleted for that. Kubernetes reports the IP with the old Pod until the node is NotReady.
 */
function reuseAddress(stage: Stage, n: number, ms: number): boolean {
  const { world } = stage;
  const run = chosen(running(world), n);
  const node = run && world.nodes.get(run.node);
  const other = running(world).find((each) => each.node !== run?.node);
  if (!run || !node || !other) return false;
  world.kubelet.powerOff(node.name);
  world.nodes.fail(node, 'off');
  world.ground.timeline.after(ms, () => recover(world, node));
  world.kubelet.freed.push(run.ip);
  const pod = world.ground.find(pods, other.name);
  if (pod) world.ground.write((api) => api.delete(pods, refTo(pod), { uid: other.uid }));
  return true;
}

const AGAIN_MS = 5_000;

/**
 * For a while, late writes to previous Pod IPs time out: the sender considers that peer inactive as long as their streams
 * live, and refuses membership changes.
 */
function misjudge({ world, undo }: Stage, percent: number, ms: number): boolean {
  const { etcd, ground } = world;
  const until = ground.timeline.now + ms;
  const stop = (): void => void undo.delete(stop);
  const timeOut = (): void => {
    if (!undo.has(stop)) return;
    const moved = running(world).flatMap((run) => (run.moved && run.process ? [run.process] : []));
    for (const peer of moved)
      for (const node of etcd.nodes) {
        const isPeer = node !== peer && node.running && node.disk !== undefined && node.disk.group === peer.disk?.group;
        if (isPeer && ground.random.between(0, 99) < percent) node.misjudges.add(peer);
      }
    const [first] = moved;
    const judges = etcd.nodes.filter(({ disk }) => disk && disk.group === first?.disk?.group);
    if (judges.length > 1 && judges.every(({ misjudges }) => misjudges.size > 0)) ground.count('misjudged by all');
    if (ground.timeline.now < until) ground.timeline.after(AGAIN_MS, timeOut);
  };
  undo.add(stop);
  timeOut();
  return true;
}

type Kinds =
  | 'crash'
  | 'endPod'
  | 'wipe'
  | 'damage'
  | 'fill'
  | 'corrupt'
  | 'loseVolume'
  | 'nodeOff'
  | 'nodeCutOff'
  | 'nodeGone'
  | 'nodeOutOfService'
  | 'reuseAddress'
  | 'isolate'
  | 'forceNew'
  | 'misjudge'
  | 'slowLearner';

export const machineDeeds: Deeds<Kinds> = {
  crash: ({ world, crashes }, { n, how, times }) => {
    const run = chosen(running(world), n);
    if (run) crashes.set(run.uid, { how: CRASHES[how], left: times });
    return run !== undefined;
  },
  endPod: ({ world }, { n, phase }) => {
    const run = chosen(running(world), n);
    if (run) world.kubelet.end(run, phase);
    return run !== undefined;
  },
  wipe: ({ world }, { n }) =>
    breakVolume(world, n, ({ volume }) => {
      volume.disk = undefined;
    }),
  damage: ({ world }, { n }) =>
    breakVolume(world, n, ({ volume }) => {
      volume.trouble = 'damaged';
    }),
  fill: ({ world }, { n }) =>
    breakVolume(world, n, ({ volume }) => {
      volume.trouble = 'full';
    }),
  corrupt: ({ world }, { n, ms }) => corrupt(world, chosen(running(world), n)?.process, ms),
  loseVolume: ({ world }, { n }) =>
    running(world).some(({ volume }) => volume.claim !== undefined) &&
    breakVolume(world, n, ({ volume }) => world.volumes.lose(volume)),
  nodeOff: ({ world }, { n, ms }) => breakForAWhile(world, n, 'off', ms),
  nodeCutOff: ({ world }, { n, ms }) => breakForAWhile(world, n, 'cutOff', ms),
  nodeGone: ({ world }, { n }) => {
    const node = breakNode(world, n, 'off');
    if (node) world.nodes.remove(node);
    return node !== undefined;
  },
  nodeOutOfService: ({ world }, { n }) => {
    const node = breakNode(world, n, 'off');
    if (node) world.nodes.declareOutOfService(node);
    return node !== undefined;
  },
  isolate: ({ world }, { n, ms }) => {
    const process = chosen(running(world), n)?.process;
    if (!process) return false;
    world.etcd.isolate(process, true);
    world.ground.timeline.after(ms, () => world.etcd.isolate(process, false));
    return true;
  },
  reuseAddress: (stage, { n, ms }) => reuseAddress(stage, n, ms),
  forceNew: (stage, { n, ms }) => forceNew(stage, n, ms),
  misjudge: (stage, { percent, ms }) => misjudge(stage, percent, ms),
  slowLearner: ({ world }, { ms }) => {
    const learner = world.etcd.nodes.find(
      ({ running: runs, disk }) => runs && disk?.group.members.get(disk.id)?.isLearner,
    );
    const stall = (node: ModelNode): void => {
      node.stalled = true;
      world.ground.count('learner stalled');
      world.ground.timeline.after(ms, () => {
        node.stalled = false;
      });
    };
    // A learner is promoted within milliseconds: without one, stall the next learner that joins.
    if (learner) stall(learner);
    else world.etcd.onJoin = stall;
    return true;
  },
};
