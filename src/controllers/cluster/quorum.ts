/** Who votes, leads and is healthy, from the observed state. The arithmetic is in `domain/quorum.ts`. */
import { agreedLeader, isCorrupt as corrupt, healthyReport, type Report, type Reporting } from '../../domain/quorum.ts';
import {
  type ClusterFacts,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  isInconsistent,
  type MemberView,
  memberOf,
} from './observed.ts';

/** The highest raft index that a member has applied. */
const maxApplied = (o: ClusterFacts): number => Math.max(0, ...o.members.map((m) => m.self?.applied ?? 0));

const reporting = (o: ClusterFacts, m: MemberView): Reporting => ({
  id: entryOf(o, m)?.id,
  self: m.self,
  isInconsistent: isInconsistent(m),
});
const reportingVoters = (o: ClusterFacts): readonly Reporting[] =>
  votersOf(o).map((entry) => {
    const m = memberOf(o, entry);
    return m ? reporting(o, m) : { id: entry.id, self: undefined, isInconsistent: false };
  });

export const isCorrupt = (o: ClusterFacts, m: MemberView): boolean => corrupt(reportingVoters(o), reporting(o, m));

const healthySelf = (o: ClusterFacts, m: MemberView): Report | undefined =>
  healthyReport(reportingVoters(o), reporting(o, m), maxApplied(o));
export const isHealthy = (o: ClusterFacts, m: MemberView): boolean => healthySelf(o, m) !== undefined;

export const votersOf = (o: ClusterFacts): readonly EtcdMemberEntry[] =>
  (entriesOf(o) ?? []).filter((e) => !e.isLearner);
export const learnersOf = (o: ClusterFacts): readonly EtcdMemberEntry[] =>
  (entriesOf(o) ?? []).filter((e) => e.isLearner);

const healthyReportOf = (o: ClusterFacts, entry: EtcdMemberEntry): Report | undefined => {
  const m = memberOf(o, entry);
  return m && healthySelf(o, m);
};
export const healthyVoters = (o: ClusterFacts): readonly EtcdMemberEntry[] =>
  votersOf(o).filter((entry) => healthyReportOf(o, entry));

export const leaderOf = (o: ClusterFacts): string | undefined =>
  agreedLeader(votersOf(o).flatMap((entry) => healthyReportOf(o, entry) ?? []));
