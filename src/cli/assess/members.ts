/** One row per member: EtcdMembers, and members that etcd lists without one. */
import { quotaOf } from '../../api/defaults.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { EtcdMemberEntry } from '../../domain/member-entry.ts';
import { isPodReady, troubleOf } from '../../domain/pod.ts';
import { present } from '../../lib/present.ts';
import type { ClusterFacts, MemberFacts } from './facts.ts';
import { isHealthy, leaderOf, listedMembers, maxApplied, memberOf, reportOf } from './quorum.ts';

export interface MemberRow {
  /** The EtcdMember, and the name of its Pod. */
  readonly name: string;
  /** `voter`: it has no leader. `unknown`: it did not respond. */
  readonly role: 'leader' | 'follower' | 'voter' | 'learner' | 'unknown';
  readonly healthy: boolean;
  readonly ready: boolean;
  readonly id?: string;
  readonly version?: string;
  readonly node?: string;
  readonly zone?: string;
  readonly podIP?: string;
  readonly restarts?: number;
  /** When its etcd started, in milliseconds since 1970. */
  readonly runningSince?: number;
  readonly databaseBytes?: number;
  readonly inUseBytes?: number;
  readonly quotaBytes?: number;
  readonly raftIndex?: number;
  readonly raftAppliedIndex?: number;
  /** Raft entries that the member with the most has applied and this one has not. */
  readonly lag?: number;
  readonly term?: number;
  readonly revision?: number;
  readonly alarms: readonly string[];
  /** What is wrong with it, as a sentence. */
  readonly problem?: string;
}

export function memberRows(facts: ClusterFacts): readonly MemberRow[] {
  const leader = leaderOf(facts);
  const own = facts.members.map((member) => rowOf(facts, member, leader));
  const foreign = listedMembers(facts)
    .filter((entry) => !memberOf(facts, entry))
    .map((entry) => foreignRow(entry));
  return [...own, ...foreign];
}

const foreignRow = ({ id, name, peerURLs, isLearner }: EtcdMemberEntry): MemberRow => ({
  name: name || (peerURLs[0] ?? id),
  role: isLearner ? 'learner' : 'unknown',
  healthy: false,
  ready: false,
  id,
  alarms: [],
  problem: 'etcd lists it, and it has no EtcdMember: the operator did not add it',
});

function rowOf(facts: ClusterFacts, member: MemberFacts, leader: string | undefined): MemberRow {
  const { object, pod, zone } = member;
  const report = reportOf(member);
  const entry = listedMembers(facts).find((each) => memberOf(facts, each) === member);
  const container = pod?.status?.containerStatuses?.find(({ name }) => name === 'etcd');
  const since = Date.parse(container?.state?.running?.startedAt ?? '');
  return {
    name: object.metadata.name ?? '',
    role: roleOf(member, leader),
    healthy: entry !== undefined && isHealthy(facts, entry),
    ready: pod !== undefined && isPodReady(pod),
    ...present({
      id: report?.id ?? object.status?.memberID,
      version: report?.version ?? object.status?.version,
      node: pod?.spec?.nodeName,
      zone,
      podIP: pod?.status?.podIP,
      restarts: container?.restartCount,
      runningSince: Number.isNaN(since) ? undefined : since,
      ...(report && {
        databaseBytes: report.databaseBytes,
        inUseBytes: report.inUseBytes,
        quotaBytes: quotaOf(member.object),
        raftIndex: report.raftIndex,
        raftAppliedIndex: report.applied,
        lag: maxApplied(facts) - report.applied,
        term: report.term,
        revision: report.revision,
      }),
      problem: problemOf(facts, member),
    }),
    alarms: report?.alarms ?? [],
  };
}

/** As the member itself reports it: an earlier role may have ended. */
function roleOf(member: MemberFacts, leader: string | undefined): MemberRow['role'] {
  const report = reportOf(member);
  if (!report) return 'unknown';
  if (report.isLearner) return 'learner';
  if (report.leader === undefined) return 'voter';
  return report.id === (leader ?? report.leader) ? 'leader' : 'follower';
}

function problemOf(facts: ClusterFacts, { object, pod, answer }: MemberFacts): string | undefined {
  if (object.metadata.deletionTimestamp !== undefined) return 'its EtcdMember is being deleted';
  const ready = findCondition(object.status?.conditions, 'Ready');
  const reported = ready?.status === 'False' ? ready.message : undefined;
  if (!pod) return object.spec.dormant ? undefined : (reported ?? 'it has no Pod');
  const trouble = troubleOf(pod, 'etcd');
  if (trouble !== undefined) return trouble;
  if (answer.is !== 'answers')
    return answer.is === 'failed' ? `it did not respond to this command: ${answer.message}` : reported;
  const { leader, alarms } = answer.report;
  if (leader === undefined) return 'it has no leader';
  const entry = listedMembers(facts).find((each) => each.id === answer.report.id);
  if (facts.list.is === 'answers' && !entry) return 'it responds, and the members do not list it';
  if (alarms.includes('NOSPACE')) return 'its database has reached the quota (NOSPACE): all members reject writes';
  if (alarms.includes('CORRUPT')) return 'etcd reports that its data is corrupt (CORRUPT)';
  if (entry && !answer.report.isLearner && !isHealthy(facts, entry))
    return `it lags by ${maxApplied(facts) - answer.report.applied} raft entries`;
  return reported;
}
