/** The membership of one etcd cluster and its rules for changing it, as etcd has them. Knows no processes. */
import { createHash } from 'node:crypto';
import type { MemberEntry } from '../../../src/etcd/client.ts';
import { Alarms } from './etcd-alarms.ts';
import { KeyStore } from './etcd-keys.ts';
import type { Refusal } from './etcd-said.ts';
import { Users } from './etcd-users.ts';

/** Peers count as healthy when they have been connected for this long. */
export const HEALTH_MS = 5_000;
/** A learner is promoted when it has this part of what the leader has. */
const READY_PART = 0.9;

/** What a member has that has applied everything that was agreed on. */
export interface State {
  readonly members: Map<bigint, MemberEntry>;
  readonly removed: Set<bigint>;
  readonly keys: KeyStore;
  readonly users: Users;
  readonly alarms: Alarms;
  /** The version that all members understand; nothing until they have agreed on one. */
  version: string | undefined;
  downgradeTo: string | undefined;
}

type Entry = (state: State) => unknown;

const newState = (members: readonly MemberEntry[]): State => ({
  members: new Map(members.map((member) => [member.id, member])),
  removed: new Set(),
  keys: new KeyStore(),
  users: new Users(),
  alarms: new Alarms(),
  version: undefined,
  downgradeTo: undefined,
});

/** One cluster: the log that was agreed on, what became of it, and who leads. Each member has applied it up to some index. */
export class Group {
  readonly clusterId: bigint;
  /** Members that have taken part once: their empty disks cannot start anew. */
  readonly bootstrapped = new Set<bigint>();
  /** How far the log of each member reaches that the present leader has heard of. It counts on that; a new leader asks first. */
  readonly matches = new Map<bigint, number>();
  /** Where the log was cut, each time that those who elected had less of it. */
  readonly cuts: number[] = [];
  readonly #founders: readonly MemberEntry[];
  readonly #log: Entry[] = [];
  #state: State;
  term = 1n;
  leader: bigint | undefined;
  leaderLostAt: number;
  versionCheckedAt: number;

  constructor(clusterId: bigint, founders: readonly MemberEntry[], now: number) {
    this.clusterId = clusterId;
    this.#founders = founders;
    this.#state = newState(founders);
    this.leaderLostAt = this.versionCheckedAt = now;
  }

  get index(): number {
    return this.#founders.length + this.#log.length;
  }
  get state(): State {
    return this.#state;
  }
  get members(): ReadonlyMap<bigint, MemberEntry> {
    return this.#state.members;
  }
  get removed(): ReadonlySet<bigint> {
    return this.#state.removed;
  }
  get revision(): bigint {
    return this.#state.keys.revision;
  }

  /** Agrees on a change. It is made again, on another state, for a member that is behind: it must depend on nothing else. */
  commit<T>(change: (state: State) => T): T {
    this.#log.push(change);
    return change(this.#state);
  }

  /** What a member has that has applied the log up to this index. */
  stateAt(index: number, from?: Behind): State {
    if (index >= this.index) return this.#state;
    const start =
      from && from.index <= index ? from : { index: this.#founders.length, state: newState(this.#founders) };
    for (const entry of this.#log.slice(start.index - this.#founders.length, index - this.#founders.length))
      entry(start.state);
    return start.state;
  }

  /** Those who elect have no more than this: what was agreed on with others is lost. */
  forgetAfter(index: number): void {
    if (index >= this.index) return;
    this.cuts.push(Math.max(index, this.#founders.length));
    this.#log.length = Math.max(0, index - this.#founders.length);
    this.#state = newState(this.#founders);
    for (const entry of this.#log) entry(this.#state);
  }
}

/** A state that is behind, kept so that the next question does not begin at the first entry. */
export interface Behind {
  readonly index: number;
  readonly state: State;
}

/** What a member knows about its peers when a change is asked of it. */
export interface Peers {
  readonly self: bigint;
  /** When the connection to this peer was made; nothing when there is none. */
  activeSince(peer: bigint): number | undefined;
  /** How far a peer's log reaches, as the leader knows. */
  match(peer: bigint): number;
  readonly now: number;
}

const sha1 = (data: Uint8Array): bigint => createHash('sha1').update(data).digest().readBigUInt64BE();

/** At a bootstrap the URLs and the token alone decide; a member that is added later has the time in its id. */
export const memberIdOf = (peerURLs: readonly string[], token: string, seconds?: number): bigint =>
  sha1(Buffer.from(peerURLs.toSorted().join('') + token + (seconds ?? '')));

export function clusterIdOf(members: readonly bigint[]): bigint {
  const data = Buffer.alloc(8 * members.length);
  for (const [i, id] of members.toSorted((a, b) => (a < b ? -1 : 1)).entries()) data.writeBigUInt64BE(id, 8 * i);
  return sha1(data);
}

export const voters = (group: Group): readonly MemberEntry[] =>
  [...group.members.values()].filter(({ isLearner }) => !isLearner);
export const quorum = (size: number): number => Math.floor(size / 2) + 1;
export const inOrder = ({ members }: Pick<Group, 'members'>): readonly MemberEntry[] =>
  [...members.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));

const started = (members: readonly MemberEntry[]): number => members.filter(({ name }) => name !== '').length;
const connected = (group: Group, peers: Peers): number =>
  voters(group).filter(({ id }) => id === peers.self || (peers.activeSince(id) ?? peers.now) < peers.now - HEALTH_MS)
    .length;

export function mayAdd(
  group: Group,
  peers: Peers,
  { id, peerURLs, isLearner }: MemberEntry,
  maxLearners: number,
): Refusal | undefined {
  const present = voters(group);
  if (peerURLs.length === 0 || peerURLs.some((url) => !/^https?:\/\/[^/]+:\d+$/.test(url))) return 'badPeerURL';
  const alone = present.length === 1;
  if (!isLearner && !(alone && started(present) === 1) && started(present) < quorum(present.length + 1))
    return 'notEnoughStarted';
  // The newcomer counts as down: those that are connected must be a quorum without it.
  if (!alone && connected(group, peers) < quorum(present.length + 1)) return 'unhealthyCluster';
  // The second is part of an id: whoever left in this very second cannot come back in it.
  if (group.removed.has(id)) return 'notFound';
  if (group.members.has(id)) return 'alreadyExists';
  if (taken(group, peerURLs)) return 'peerURLExists';
  const learners = group.members.size - present.length;
  return isLearner && learners >= maxLearners ? 'tooManyLearners' : undefined;
}

export function mayRemove(group: Group, peers: Peers, id: bigint): Refusal | undefined {
  const member = group.members.get(id);
  if (member?.isLearner) return undefined;
  const present = voters(group);
  const rest = present.filter((voter) => voter.id !== id);
  if (started(rest) < quorum(rest.length)) return 'notEnoughStarted';
  const down = id !== peers.self && peers.activeSince(id) === undefined;
  if (!down && connected(group, peers) - 1 < 1 + Math.floor((present.length - 1) / 2)) return 'unhealthyCluster';
  return member ? undefined : 'notFound';
}

export function mayPromote(group: Group, peers: Peers, id: bigint): Refusal | undefined {
  const member = group.members.get(id);
  if (!member) return 'notFound';
  if (peers.match(id) / group.index < READY_PART) return 'learnerNotReady';
  const present = voters(group);
  if (started(present) + 1 < quorum(present.length + 1)) return 'notEnoughStarted';
  return member.isLearner ? undefined : 'notLearner';
}

export function mayUpdate(group: Group, id: bigint, peerURLs: readonly string[]): Refusal | undefined {
  if (!group.members.has(id)) return 'notFound';
  return taken(group, peerURLs, id) ? 'peerURLExists' : undefined;
}

const taken = (group: Group, urls: readonly string[], except?: bigint): boolean =>
  [...group.members.values()].some(({ id, peerURLs }) => id !== except && peerURLs.some((url) => urls.includes(url)));
