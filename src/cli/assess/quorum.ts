/** Who votes, leads and is healthy, by the arithmetic of `domain/quorum.ts`, which the operator uses too. */
import { DATA_INCONSISTENT } from '../../api/etcd-member.ts';
import { findCondition } from '../../domain/conditions.ts';
import { type EtcdMemberEntry, isEntryOf } from '../../domain/member-entry.ts';
import { agreedLeader, healthyReport, quorumOf, type Reporting } from '../../domain/quorum.ts';
import type { ClusterFacts, MemberFacts, MemberReport } from './facts.ts';

export interface Quorum {
  readonly voters: number;
  /** Number of voters that make up a quorum. */
  readonly needed: number;
  readonly healthy: number;
  /** How many more voters may fail. Below zero: the quorum is lost. */
  readonly margin: number;
  /** `etcd`: as the members responded to this command. `operator`: as the status of the EtcdCluster reports it. */
  readonly source: 'etcd' | 'operator';
}

export const reportOf = ({ answer }: MemberFacts): MemberReport | undefined =>
  answer.is === 'answers' ? answer.report : undefined;

export const listedMembers = ({ list }: ClusterFacts): readonly EtcdMemberEntry[] =>
  list.is === 'answers' ? list.members : [];

export const memberOf = (facts: ClusterFacts, entry: EtcdMemberEntry): MemberFacts | undefined =>
  facts.members.find(({ object }) => isEntryOf(entry, object));

export const maxApplied = ({ members }: ClusterFacts): number =>
  Math.max(0, ...members.map((member) => reportOf(member)?.applied ?? 0));

const reporting = (facts: ClusterFacts, entry: EtcdMemberEntry): Reporting => {
  const member = memberOf(facts, entry);
  const ready = findCondition(member?.object.status?.conditions, 'Ready');
  return {
    id: entry.id,
    self: member && reportOf(member),
    isInconsistent: ready?.reason === DATA_INCONSISTENT,
  };
};

const votersOf = (facts: ClusterFacts): readonly Reporting[] =>
  listedMembers(facts)
    .filter(({ isLearner }) => !isLearner)
    .map((entry) => reporting(facts, entry));

export function isHealthy(facts: ClusterFacts, entry: EtcdMemberEntry): boolean {
  return healthyReport(votersOf(facts), reporting(facts, entry), maxApplied(facts)) !== undefined;
}

/** The id of the leader that all healthy voters agree on. */
export function leaderOf(facts: ClusterFacts): string | undefined {
  const voters = votersOf(facts);
  return agreedLeader(voters.flatMap((voter) => healthyReport(voters, voter, maxApplied(facts)) ?? []));
}

/** `undefined` before the bootstrap, or when neither a member nor the operator has reported it. */
export function quorum(facts: ClusterFacts): Quorum | undefined {
  const voters = votersOf(facts);
  if (voters.length === 0) {
    const recorded = facts.cluster.status?.quorum;
    return recorded && { voters: recordedVoters(facts), ...recorded, source: 'operator' };
  }
  const needed = quorumOf(voters.length);
  const healthy = voters.filter((voter) => healthyReport(voters, voter, maxApplied(facts))).length;
  return { voters: voters.length, needed, healthy, margin: healthy - needed, source: 'etcd' };
}

const recordedVoters = ({ members }: ClusterFacts): number =>
  members.filter(({ object }) => object.status?.isVoter === true).length;
