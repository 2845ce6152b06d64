/** Who votes, leads and is healthy, from the observed state. The arithmetic is in `domain/quorum.ts`. */
import { agreedLeader, isCorrupt as corrupt, healthyReport, type Report, type Reporting } from '../../domain/quorum.ts';
import {
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  isInconsistent,
  type MemberView,
  memberOf,
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
