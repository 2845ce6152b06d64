/** The defragmentation that an EtcdDefrag asks for: its members, and the one that is being defragmented. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { EtcdDefrag, MemberOutcome } from '../../api/etcd-defrag.ts';
import { etcdDefrags } from '../../api/names.ts';
import { fleetBusy, hasStarted, isDone, timeLimitMs } from '../../domain/defragmentation.ts';
import { isObject } from '../../lib/merge-patch.ts';
import { type NamedCall, refTo, type Step } from '../../runtime/plan.ts';
import { type ClusterFacts, evidence, isNotBeingDeleted, isVoter, type MemberView, nameOf } from './observed.ts';
import { leaderOf } from './quorum.ts';

export type Marker = NonNullable<EtcdClusterStatus['defragmentation']>;

export const markerOf = ({ cluster }: Pick<ClusterFacts, 'cluster'>): Marker | undefined =>
  cluster.status?.defragmentation;

/** Of all requests that a process sends. */
export const requestOf = ({ uid, member, attempt, startedAt }: Marker): string =>
  [uid, member, attempt, startedAt].join('/');

/** Recorded before etcd was asked, and not known to have ended: it serves nothing, and will again. */
export const isBeingDefragmented = (o: ClusterFacts, m: MemberView): boolean =>
  markerOf(o)?.member === nameOf(m) && !isMarkerOver(o);

/** Not one with failure evidence, whose etcd does not run any more; and never for longer than the time limit. */
export function busyWith(o: ClusterFacts, m: MemberView): string | undefined {
  const marker = markerOf(o);
  const isBusy = isBeingDefragmented(o, m) && m.pod.is === 'present' && evidence(m) === undefined;
  return isBusy && marker && !isOverdue(o, marker) ? 'is being defragmented' : undefined;
}

export function streamingFrom({ streams }: ClusterFacts, m: MemberView): string | undefined {
  if (typeof streams === 'string') return `whether a snapshot streams from ${nameOf(m)} is unknown: ${streams}`;
  return streams?.includes(nameOf(m)) ? `a snapshot streams from ${nameOf(m)}, or may do so` : undefined;
}

/** Only before its members are listed: one that has started goes on, and would hold its place for nothing otherwise. */
export const waitsForOthers = ({ defrag, defragFleet }: ClusterFacts): string | undefined =>
  defragFleet && defrag && !hasStarted(defrag) ? fleetBusy(defragFleet) : undefined;

/** The EtcdDefrag whose members a plan lists. What comes of them is recorded by such a step as well, and starts nothing. */
export const startedRun = ({ defrag }: ClusterFacts, steps: readonly Step<NamedCall>[]): string | undefined =>
  defrag && !hasStarted(defrag) && steps.some((step) => step.do === 'patch' && listsMembers(step))
    ? defrag.metadata.uid
    : undefined;
const listsMembers = ({ to, fields }: Extract<Step, { readonly do: 'patch' }>): boolean =>
  to.kind === etcdDefrags.kind && isObject(fields['status']) && 'members' in fields['status'];

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

/** Also of a member that is missing from the status: an edit of it, or a restored object, must not keep the marker for ever. */
export const outcomeOf = (o: ClusterFacts, defrag: EtcdDefrag, member: string): MemberOutcome | undefined =>
  workList(o, defrag).find(({ name }) => name === member);

/** The cluster controller is the only writer of `members` and `waitingFor`. */
export const membersPatch = (defrag: EtcdDefrag, members: readonly MemberOutcome[]): Step => ({
  do: 'patch',
  to: refTo(etcdDefrags.kind, defrag),
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

/** What came of the recorded defragmentation is in the EtcdDefrag; or nothing can be recorded there, and it has ended. */
export function isMarkerOver(o: ClusterFacts): boolean {
  const marker = markerOf(o);
  if (!marker) return true;
  const outcome = o.defrag?.metadata.uid === marker.uid ? outcomeOf(o, o.defrag, marker.member) : undefined;
  return outcome ? isDone(outcome) || (outcome.attempts ?? 0) >= marker.attempt : hasEnded(o, marker);
}

/** A response that is awaited may be about a defragmentation that has not started yet. */
const hasEnded = (o: ClusterFacts, marker: Marker): boolean => {
  const m = memberNamed(o, marker.member);
  const serves = m?.answersReads === true && o.defragResponse?.is !== 'awaited';
  return hasStopped(m) || serves || isOverdue(o, marker);
};

export const memberNamed = (o: ClusterFacts, name: string): MemberView | undefined =>
  o.members.find((m) => nameOf(m) === name);

/** It will not come back. An EtcdMember that is being deleted still has its etcd, until that has been removed. */
export const hasStopped = (m: MemberView | undefined): boolean =>
  !m || (!isNotBeingDeleted(m) && m.pod.is === 'absent');
