/** The membership of one etcd cluster and its rules for changing it, as etcd 3.6.16 has them. Knows no processes. */
import { createHash } from 'node:crypto';
import type { MemberEntry } from '../../../src/etcd/client.ts';
import type { EtcdError, EtcdErrorKind } from '../../../src/etcd/errors.ts';

/** Peers count as healthy when they have been connected for this long. */
export const HEALTH_MS = 5_000;
/** A learner is promoted when it has this part of what the leader has. */
const READY_PART = 0.9;

/** What has been agreed on: the same for all members; each has applied it up to some index. */
export interface Group {
  readonly clusterId: bigint;
  readonly members: Map<bigint, MemberEntry>;
  readonly removed: Set<bigint>;
  /** Members that have taken part once: their empty disks cannot start anew. */
  readonly bootstrapped: Set<bigint>;
  /** Members whose log the present leader has seen. It counts on what they had; a new leader asks first. */
  readonly seen: Set<bigint>;
  readonly keys: Map<string, { readonly value: Uint8Array; readonly index: number; readonly revision: bigint }[]>;
  index: number;
  revision: bigint;
  term: bigint;
  leader: bigint | undefined;
  leaderLostAt: number;
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

export const newGroup = (clusterId: bigint, members: readonly MemberEntry[], now: number): Group => ({
  clusterId,
  members: new Map(members.map((member) => [member.id, member])),
  removed: new Set(),
  bootstrapped: new Set(),
  seen: new Set(),
  keys: new Map(),
  index: members.length,
  revision: 1n,
  term: 1n,
  leader: undefined,
  leaderLostAt: now,
});

export const voters = (group: Group): readonly MemberEntry[] =>
  [...group.members.values()].filter(({ isLearner }) => !isLearner);
export const quorum = (size: number): number => Math.floor(size / 2) + 1;
export const inOrder = (group: Group): readonly MemberEntry[] =>
  [...group.members.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));

const WORDS = {
  notEnoughStarted: 're-configuration failed due to not enough started members',
  unhealthyCluster: 'unhealthy cluster',
  peerURLExists: 'Peer URLs already exists',
  alreadyExists: 'member ID already exist',
  badPeerURL: 'given member URLs are invalid',
  tooManyLearners: 'too many learner members in cluster',
  learnerNotReady: 'can only promote a learner member which is in sync with leader',
  notLearner: 'can only promote a learner member',
  notFound: 'member not found',
  learnerRefused: 'rpc not supported for learner',
  notLeader: 'not leader',
  timeout: 'request timed out',
} as const satisfies Partial<Record<EtcdErrorKind, string>>;

export type Refusal = keyof typeof WORDS;
export const refusal = (kind: Refusal): EtcdError => ({ kind, message: `etcdserver: ${WORDS[kind]}` });

const started = (members: readonly MemberEntry[]): number => members.filter(({ name }) => name !== '').length;
const connected = (group: Group, peers: Peers): number =>
  voters(group).filter(({ id }) => id === peers.self || (peers.activeSince(id) ?? peers.now) < peers.now - HEALTH_MS)
    .length;

export function mayAdd(
  group: Group,
  peers: Peers,
  { peerURLs, learner, maxLearners }: { readonly peerURLs: readonly string[]; learner: boolean; maxLearners: number },
): Refusal | undefined {
  const present = voters(group);
  if (peerURLs.length === 0 || peerURLs.some((url) => !/^https?:\/\/[^/]+:\d+$/.test(url))) return 'badPeerURL';
  const alone = present.length === 1;
  if (!learner && !(alone && started(present) === 1) && started(present) < quorum(present.length + 1))
    return 'notEnoughStarted';
  // The newcomer counts as down: those that are connected must be a quorum without it.
  if (!alone && connected(group, peers) < quorum(present.length + 1)) return 'unhealthyCluster';
  if (taken(group, peerURLs)) return 'peerURLExists';
  const learners = group.members.size - present.length;
  return learner && learners >= maxLearners ? 'tooManyLearners' : undefined;
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
