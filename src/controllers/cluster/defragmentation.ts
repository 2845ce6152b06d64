/** The defragmentation that an EtcdDefrag asks for: its members, and the one that is being defragmented. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { EtcdDefrag, MemberOutcome } from '../../api/etcd-defrag.ts';
import { isDone, timeLimitMs } from '../../domain/defragmentation.ts';
import { refTo, type Step } from '../../runtime/plan.ts';
import { type ClusterFacts, isNotBeingDeleted, isVoter, type MemberView, nameOf } from './observed.ts';
import { leaderOf } from './quorum.ts';

type Marker = NonNullable<EtcdClusterStatus['defragmentation']>;

export const markerOf = ({ cluster }: Pick<ClusterFacts, 'cluster'>): Marker | undefined =>
  cluster.status?.defragmentation;

/** Recorded before etcd was asked, and not known to have ended. Its etcd may report a healthy status, and serves nothing. */
export const isBeingDefragmented = (o: ClusterFacts, m: MemberView): boolean =>
  markerOf(o)?.member === nameOf(m) && !isMarkerOver(o);

export function streamingFrom({ streams }: ClusterFacts, m: MemberView): string | undefined {
  if (typeof streams === 'string') return `whether a snapshot streams from ${nameOf(m)} is unknown: ${streams}`;
  return streams?.includes(nameOf(m)) ? `a snapshot streams from ${nameOf(m)}, or may do so` : undefined;
}

/** What is recorded of each member, in this order; members that joined meanwhile come last. */
export function workList(o: ClusterFacts, { status }: EtcdDefrag): readonly MemberOutcome[] {
  const recorded = status?.members ?? [];
  const leads = (m: MemberView): boolean => m.self !== undefined && m.self.id === leaderOf(o);
  const missing = o.members
    .filter((m) => isVoter(m) && recorded.every(({ name }) => name !== nameOf(m)))
    .toSorted((a, b) => Number(leads(a)) - Number(leads(b)));
  const pending = missing.map((m) => ({
    name: nameOf(m),
    role: leads(m) ? 'leader' : 'follower',
    outcome: 'Pending',
  }));
  return [...recorded, ...pending];
}

export const outcomeOf = ({ status }: EtcdDefrag, member: string): MemberOutcome | undefined =>
  status?.members?.find(({ name }) => name === member);

/** The cluster controller is the only writer of `members` and `waitingFor`. */
export const membersPatch = (defrag: EtcdDefrag, members: readonly MemberOutcome[]): Step => ({
  do: 'patch',
  to: refTo('EtcdDefrag', defrag),
  subresource: 'status',
  fields: { status: { members, waitingFor: null } },
});

export const outcomePatch = (o: ClusterFacts, defrag: EtcdDefrag, outcome: MemberOutcome): Step =>
  membersPatch(
    defrag,
    workList(o, defrag).map((each) => (each.name === outcome.name ? outcome : each)),
  );

export const defragmentedOutcome = (
  before: MemberOutcome,
  dbSizeBefore: number,
  { dbSizeAfter, finishedAt }: { readonly dbSizeAfter: number; readonly finishedAt: string },
): MemberOutcome => {
  const { reason: _reason, message: _message, ...rest } = before;
  const reclaimedBytes = Math.max(0, dbSizeBefore - dbSizeAfter);
  return { ...rest, outcome: 'Defragmented', dbSizeBefore, dbSizeAfter, reclaimedBytes, finishedAt };
};

/** etcd has had more time than the slowest disk needs. */
export const isOverdue = ({ now }: ClusterFacts, { startedAt, dbSizeBefore }: Marker): boolean =>
  Math.abs(now - Date.parse(startedAt)) > timeLimitMs(dbSizeBefore);

/** What came of the recorded defragmentation is in the EtcdDefrag; or there is none any more, and the member serves again. */
export function isMarkerOver(o: ClusterFacts): boolean {
  const marker = markerOf(o);
  if (!marker) return true;
  if (o.defrag?.metadata.uid !== marker.uid) {
    const m = o.members.find((each) => nameOf(each) === marker.member);
    return !m || !isNotBeingDeleted(m) || m.answersReads === true || isOverdue(o, marker);
  }
  const outcome = outcomeOf(o.defrag, marker.member);
  return outcome !== undefined && (isDone(outcome) || (outcome.attempts ?? 0) >= marker.attempt);
}
