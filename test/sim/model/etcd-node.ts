/** A member's process and its data directory. */
import type { Behind, Group, State } from './etcd-group.ts';
import type { NodeTls } from './etcd-tls.ts';

/** A data directory: what survives the process. */
export interface Disk {
  readonly group: Group;
  readonly id: bigint;
  applied: number;
  /** How many of the cuts of the cluster's log this disk has applied. */
  cuts: number;
  behind?: Behind;
  /** The size of the database file: the most that it needed since it was defragmented. */
  dbSize: number;
  /** Its keys differ from those of its peers. */
  corrupted?: true;
}

export interface NodeOptions {
  /** The client URL; without it the node gets an address of its own. */
  readonly endpoint?: string | undefined;
  readonly peerURL?: string | undefined;
  readonly version?: string | undefined;
  readonly maxLearners?: number | undefined;
  readonly quotaBytes?: number | undefined;
  readonly tokenSeconds?: number | undefined;
  /** Absent: connections are not modelled, and every client gets one. */
  readonly tls?: NodeTls | undefined;
}

export interface ModelNode {
  readonly name: string;
  readonly endpoint: string;
  readonly peerURL: string;
  readonly options: NodeOptions;
  readonly maxLearners: number;
  version: string;
  disk: Disk | undefined;
  running: boolean;
  /** Has joined its cluster since it was started: before that it serves no client. */
  serving: boolean;
  /** Has published its name since it was started. */
  published: boolean;
  /** Before this time it does not respond to clients, although it takes part in raft. */
  servesAt: number;
  /** Until then it rewrites its database: it answers with the member list, and with nothing else. 0: it does not. */
  defragmentsUntil: number;
  /** Cut off from clients and peers. */
  isolated: boolean;
  /** Does not receive its leader's log: a slow learner. */
  stalled: boolean;
  startedAt: number;
  reachableSince: number;
  lastWords: string;
  /** Peers that it considers inactive although their streams live, because a late write to a previous address timed out. */
  readonly misjudges: Set<ModelNode>;
  /** When each token that it knows expires. A process that restarts knows none. */
  readonly tokens: Map<string, number>;
}

/** A database without keys. */
const EMPTY_BYTES = 16_384;
const PAGE = 4_096;

/** A cut of the log applies to every disk, also to one that was offline then. */
export function rebase(disk: Disk): void {
  const { cuts } = disk.group;
  if (disk.cuts === cuts.length) return;
  disk.applied = Math.min(disk.applied, ...cuts.slice(disk.cuts));
  disk.cuts = cuts.length;
  delete disk.behind;
}

export const stateOf = (disk: Disk): State => {
  const { group, applied } = disk;
  const state = group.stateAt(applied, disk.behind);
  if (state === group.state) delete disk.behind;
  else disk.behind = { index: applied, state };
  return state;
};

/** The size of the keys, in whole pages. */
export const inUse = (disk: Disk): number => EMPTY_BYTES + Math.ceil(stateOf(disk).keys.bytes / PAGE) * PAGE;
export const sizeOf = (disk: Disk): number => {
  disk.dbSize = Math.max(disk.dbSize, inUse(disk));
  return disk.dbSize;
};

export const newDisk = (group: Group, id: bigint): Disk => ({
  group,
  id,
  applied: 0,
  cuts: group.cuts.length,
  dbSize: EMPTY_BYTES + PAGE,
});
