/** The membership of one etcd cluster and etcd's rules for changing it. Knows no processes. */
import { createHash } from 'node:crypto';
import type { MemberEntry } from '../../../src/etcd/client.ts';
import { Alarms } from './etcd-alarms.ts';
import { KeyStore } from './etcd-keys.ts';
import type { Refusal } from './etcd-said.ts';
import { Users } from './etcd-users.ts';

/** Peers count as healthy once they have been connected for this long. */
export const HEALTH_MS = 5_000;
/** A learner can be promoted when it has this share of the leader's log. */
const READY_PART = 0.9;

/** The state of a member that has applied every committed entry. */
export interface State {
  readonly members: Map<bigint, MemberEntry>;
  readonly removed: Set<bigint>;
  readonly keys: KeyStore;
  readonly users: Users;
  readonly alarms: Alarms;
  /** The cluster version; undefined until the members have agreed on one. */
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

/** One cluster: its committed log, the resulting state, and the leader. Each member has applied the log up to some index. */
export class Group {
  readonly clusterId: bigint;
  /** Members that have taken part once: they cannot bootstrap again with an empty disk. */
  readonly bootstrapped = new Set<bigint>();
  /** The match index of each member as the current leader knows it. It relies on these; a new leader asks first. */
  readonly matches = new Map<bigint, number>();
  /** Where the log was cut, each time that the electing members had less of it. */
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

  /** Commits a change. It is replayed on another state for a member that lags behind, so it must depend on nothing else. */
  commit<T>(change: (state: State) => T): T {
    this.#log.push(change);
    return change(this.#state);
  }

  /** The state of a member that has applied the log up to this index. */
  stateAt(index: number, from?: Behind): State {
    if (index >= this.index) return this.#state;
    const start =
      from && from.index <= index ? from : { index: this.#founders.length, state: newState(this.#founders) };
    for (const entry of this.#log.slice(start.index - this.#founders.length, index - this.#founders.length))
      entry(start.state);
    return start.state;
  }

  /** The electing members have no more than this: entries that were committed with others are lost. */
  forgetAfter(index: number): void {
    if (index >= this.index) return;
    this.cuts.push(Math.max(index, this.#founders.length));
    this.#log.length = Math.max(0, index - this.#founders.length);
    this.#state = newState(this.#founders);
    for (const entry of this.#log) entry(this.#state);
  }
}

/** A state that lags behind, cached so that the next read does not replay the log from its first entry. */
export interface Behind {
  readonly index: number;
  readonly state: State;
}

/** What a member knows about its peers when it is asked for a membership change. */
export interface Peers {
  readonly self: bigint;
  /** When the connection to this peer was made; undefined when there is none. */
  activeSince(peer: bigint): number | undefined;
  /** A peer's match index, as the leader knows it. */
  match(peer: bigint): number;
  readonly now: number;
}

const sha1 = (data: Uint8Array): bigint => createHash('sha1').update(data).digest().readBigUInt64BE();

/** At a bootstrap the URLs and the token alone decide; the id of a member that is added later includes the time. */
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
  // The new member counts as down: the connected members must be a quorum without it.
  if (!alone && connected(group, peers) < quorum(present.length + 1)) return 'unhealthyCluster';
  // The id includes the second: a member that was removed in this very second cannot be added again in it.
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
