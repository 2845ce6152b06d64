/** The disruption check: whether a member may be removed or restarted now. Every rule that disrupts a member asks here. */
import {
  agreedLeader,
  isCorrupt as corrupt,
  healthyReport,
  quorumOf,
  type Report,
  type Reporting,
} from '../../domain/quorum.ts';
import {
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  evidence,
  isInconsistent,
  isNotBeingDeleted,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
} from './observed.ts';

/** The highest raft index that a member has applied. */
const maxApplied = (o: Observed): number => Math.max(0, ...o.members.map((m) => m.self?.applied ?? 0));

const reporting = (o: Observed, m: MemberView): Reporting => ({
  id: entryOf(o, m)?.id,
  self: m.self,
  isInconsistent: isInconsistent(m),
});
const reportingVoters = (o: Observed): readonly Reporting[] =>
  votersOf(o).map((entry) => {
    const m = memberOf(o, entry);
    return m ? reporting(o, m) : { id: entry.id, self: undefined, isInconsistent: false };
  });

export const isCorrupt = (o: Observed, m: MemberView): boolean => corrupt(reportingVoters(o), reporting(o, m));

const healthySelf = (o: Observed, m: MemberView): Report | undefined =>
  healthyReport(reportingVoters(o), reporting(o, m), maxApplied(o));
export const isHealthy = (o: Observed, m: MemberView): boolean => healthySelf(o, m) !== undefined;

export const votersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => !e.isLearner);
export const learnersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => e.isLearner);

const healthyReportOf = (o: Observed, entry: EtcdMemberEntry): Report | undefined => {
  const m = memberOf(o, entry);
  return m && healthySelf(o, m);
};
export const healthyVoters = (o: Observed): readonly EtcdMemberEntry[] =>
  votersOf(o).filter((entry) => healthyReportOf(o, entry));

export const leaderOf = (o: Observed): string | undefined =>
  agreedLeader(votersOf(o).flatMap((entry) => healthyReportOf(o, entry) ?? []));

const displayName = (o: Observed, entry: EtcdMemberEntry): string => {
  const m = memberOf(o, entry);
  return m ? nameOf(m) : entry.name || entry.peerURLs.join();
};

const isKept = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && isNotBeingDeleted(m);
};

/** It has failure evidence, is corrupt, or is unhealthy while being deleted: removing it does not weaken the quorum of the others. */
const isLost = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && (evidence(m) !== undefined || isCorrupt(o, m) || !isNotBeingDeleted(m)) && !isHealthy(o, m);
};

/**
 * Why this member may not be removed now; `undefined` when it may. A learner has no vote. Before a voter is removed, all others
 * must be healthy, so that they have every acknowledged write. If the member is lost itself, a quorum of the others is enough:
 * otherwise two lost members of five would block each other for ever.
 */
export function removalBlockedBy(o: Observed, entry: EtcdMemberEntry, comesBack = false): string | undefined {
  if (leaderOf(o) === undefined) return 'the members do not agree on a leader';
  if (entry.isLearner) return undefined;
  const others = votersOf(o).filter(({ id }) => id !== entry.id);
  const unhealthy = others.filter((other) => !healthyReportOf(o, other)).map((other) => displayName(o, other));
  const helps = isLost(o, entry) && others.length - unhealthy.length >= quorumOf(others.length);
  if (unhealthy.length > 0 && !helps)
    return `the quorum needs ${unhealthy.join(', ')}, which ${unhealthy.length === 1 ? 'is' : 'are'} not healthy`;
  // An unhealthy member does not serve: its removal disrupts nothing, even while other members are being deleted.
  if (!healthyReportOf(o, entry)) return undefined;
  return comesBack || others.some((other) => isKept(o, other)) ? undefined : 'all other voters are being deleted';
}

/** The same check for a restart, after which the member has its data again. A single voter may be restarted: its downtime is unavoidable. */
export const restartBlockedBy = (o: Observed, entry: EtcdMemberEntry): string | undefined =>
  removalBlockedBy(o, entry, true);
