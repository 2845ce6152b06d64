/** Membership: the members of the cluster, and changes to it. */
import { Cluster, type Member, type MemberListResponse } from '../gen/etcd/cluster_pb.ts';
import { shown } from '../lib/printable.ts';
import type { Ask, Caller } from './call.ts';
import { failure, type Result } from './errors.ts';

export interface MemberEntry {
  readonly id: bigint;
  /** Empty until the member has started. */
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
  readonly isLearner: boolean;
}

export interface Membership {
  readonly clusterId: bigint;
  readonly members: readonly MemberEntry[];
}

export interface Added extends Membership {
  readonly added: MemberEntry;
}

export interface MembersPort {
  /** Linearizable: confirmed by a quorum. Otherwise: as this member last knew it. */
  list(ask: Ask, options: { readonly linearizable: boolean }): Promise<Result<Membership>>;
  add(ask: Ask, peerURLs: readonly string[], options: { readonly learner: boolean }): Promise<Result<Added>>;
  /** With auth enabled, members before 3.5.28 and 3.6.6 accept this at the leader only. */
  promote(ask: Ask, id: bigint): Promise<Result<Membership>>;
  remove(ask: Ask, id: bigint): Promise<Result<Membership>>;
  /** Never for a learner: before 3.5.31 and 3.6.12 this made it a voter. */
  update(ask: Ask, id: bigint, peerURLs: readonly string[]): Promise<Result<Membership>>;
}

/** No real cluster has this many; a response with more is an attack or a bug. */
const MAX_MEMBERS = 100;
/** Names and URLs reach messages, flags and the status. */
const MAX_NAME = 253;
const MAX_URL = 1024;
const MAX_URLS = 16;

const entry = ({ ID, name, peerURLs, clientURLs, isLearner }: Member): MemberEntry => ({
  id: ID,
  name: shown(name, MAX_NAME),
  peerURLs: peerURLs.slice(0, MAX_URLS).map((url) => shown(url, MAX_URL)),
  clientURLs: clientURLs.slice(0, MAX_URLS).map((url) => shown(url, MAX_URL)),
  isLearner,
});

function membership({ header, members }: Pick<MemberListResponse, 'header' | 'members'>): Membership {
  if (members.length > MAX_MEMBERS) throw failure('badAnswer', `the response lists ${members.length} members`);
  return { clusterId: header?.clusterId ?? 0n, members: members.map(entry) };
}

export const membersPort = (caller: Caller): MembersPort => ({
  list: (ask, { linearizable }) => caller.unary(ask, Cluster.method.memberList, { linearizable }, membership),
  add: (ask, peerURLs, { learner }) =>
    caller.unary(ask, Cluster.method.memberAdd, { peerURLs: [...peerURLs], isLearner: learner }, (answer) => {
      if (!answer.member) throw failure('badAnswer', 'the response does not name the member that was added');
      return { ...membership(answer), added: entry(answer.member) };
    }),
  promote: (ask, ID) => caller.unary(ask, Cluster.method.memberPromote, { ID }, membership),
  remove: (ask, ID) => caller.unary(ask, Cluster.method.memberRemove, { ID }, membership),
  update: (ask, ID, peerURLs) =>
    caller.unary(ask, Cluster.method.memberUpdate, { ID, peerURLs: [...peerURLs] }, membership),
});
