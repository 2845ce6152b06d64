/** Rules that restart outdated members, one after the other. */
import { ROLE_VOTER } from '../../../api/names.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { ROTATING } from '../credentials/state.ts';
import { isBeingDefragmented } from '../defragmentation.ts';
import { type Contributed, type Decided, isInMemory, type MemberView, nameOf, type Observed } from '../observed.ts';
import { brokenMembersToUpdate } from '../rollout/broken.ts';
import { restartCandidate } from '../rollout/candidate.ts';
import { cutOffMembers } from '../rollout/expired.ts';
import { rolloutFailure } from '../rollout/failure.ts';
import { relabelMemberSteps } from '../rollout/metadata.ts';
import { podOf } from '../rollout/pod-ref.ts';
import { isEditReason, ROLLING_OUT } from '../rollout/reasons.ts';
import { deadlineOf, drainingForMs, restarting, trafficPatch } from '../rollout/restart.ts';
import { changesVersion, dueFields, isOnDelete, ROLLOUT_FAILED } from '../rollout/state.ts';
import { describedFields } from '../rollout/template.ts';
import { takeTurn } from '../rollout/turn.ts';
import { givenFields, successorOf, updateSteps } from '../rollout/update.ts';
import { beforeVersionChange, versionChangeBlockedBy } from '../rollout/version-change.ts';

export function restart(o: Observed): Decided {
  const { m, reasons = [] } = restartCandidate(o) ?? {};
  const [first] = reasons;
  if (!m || !first) return undefined;
  const before = isEditReason(first) && changesVersion(o, m) ? beforeVersionChange(o) : undefined;
  if (before) return before;
  const message = `${nameOf(m)} is restarted ${reasons.map((each) => each.message).join(', ')}`;
  const turn = reasons.every(isEditReason) ? takeTurn(o, message) : undefined;
  // With the member: the API server is asked about its next Pod before the turn is taken, which others wait for.
  return turn ? { ...turn, restarts: m } : restarting(o, { m, message, reason: first.reason });
}

/**
 * CAs or certificates have expired, and no new connection reaches the member: neither the operator's, nor the one that would have
 * it restarted in turn. One that is not ready has no connection to lose, so all of these restart without waiting for each other.
 */
export function restartExpired(o: Observed): Decided {
  const m = cutOffMembers(o).find((each) => each.blockedBy === undefined)?.m;
  if (!m) return undefined;
  const message = `${nameOf(m)} is restarted with the new CA bundle: the certificates have expired, and no new connection reaches it`;
  const steps: readonly Step[] = [{ do: 'delete', what: podOf(m) }];
  return { message, steps, restarts: m, event: { type: 'Normal', reason: ROTATING, note: message } };
}

/** The resourceVersion makes the deletion fail if the EtcdMember has changed: a member that has just recovered stays. */
const rejoinSteps = (m: MemberView): readonly Step[] => [
  { do: 'delete', what: refTo('EtcdMember', m.object, { resourceVersion: true }) },
];

const podDeletion = (m: MemberView): readonly Step[] =>
  m.pod.is === 'present' && m.pod.terminating !== true ? [{ do: 'delete', what: podOf(m) }] : [];

/**
 * The Pod of a member that takes no part is replaced by one with the present template, without waiting for other members. This is
 * how a wrong edit is taken back. A member in memory is replaced as a whole, by one that joins as a learner.
 */
export function updateBroken(o: Observed): Decided {
  const m = brokenMembersToUpdate(o).find((each) => each.blockedBy === undefined)?.m;
  if (!m) return undefined;
  const updates = isInMemory(m) ? [] : updateSteps(o, m);
  const fields = describedFields(givenFields(o, m), successorOf(o, m).spec);
  const how = isInMemory(m) ? 'replaced by a member' : 'restarted';
  const message = `${nameOf(m)} is not ready, and is ${how} with another ${fields}`;
  const decided = { message, restarts: m };
  if (updates.length > 0) return { ...decided, ...deadlineOf(o, m), steps: updates };
  const removed = isInMemory(m) ? { ...deadlineOf(o, m), steps: rejoinSteps(m) } : { steps: podDeletion(m) };
  return { ...decided, ...removed, event: { type: 'Normal', reason: ROLLING_OUT, note: message } };
}

/** Recorded before the member gets back what it had: otherwise it would get the edit again at once. */
export function stopRollout(o: Observed): Decided {
  const failure = rolloutFailure(o);
  if (!failure) return undefined;
  const { message, rollout } = failure;
  return { message, latch: { rollout }, event: { type: 'Warning', reason: ROLLOUT_FAILED, note: message } };
}

/** With updateStrategy OnDelete, EtcdMembers are changed, and their Pods follow when a user deletes them. */
export function updateSpecs(o: Observed): Decided {
  if (!isOnDelete(o)) return undefined;
  const isChanging = o.members.some((each) => changesVersion(o, each) && dueFields(o, each).length > 0);
  const before = isChanging && !versionChangeBlockedBy(o) ? beforeVersionChange(o) : undefined;
  if (before) return before;
  const m = o.members.find((each) => updateSteps(o, each).length > 0);
  return m && { message: `the next Pod of ${nameOf(m)} has the edit`, steps: updateSteps(o, m) };
}

export function relabelMembers(o: Observed): Contributed {
  const sequences = relabelMemberSteps(o);
  return sequences.length === 0 ? undefined : { message: 'additionalMetadata has changed', sequences };
}

/** A member that is not restarted after all, or has to wait for another one, goes back into the client Service. */
export const restoreTraffic =
  (restarts: MemberView | undefined) =>
  (o: Observed): Contributed => {
    const drained = o.members.filter(
      (m) => drainingForMs(o, m) !== undefined && m !== restarts && !isBeingDefragmented(o, m),
    );
    if (drained.length === 0) return undefined;
    const message = `${drained.map(nameOf).join(', ')} is not restarted now: back in the client Service`;
    return { message, sequences: drained.map((m) => [trafficPatch(m, null, ROLE_VOTER)]) };
  };
