/** Which outdated member restarts next, and whether it may do so now. */
import type { Blocked } from '../../../domain/disruption.ts';
import { SETTLE_MS, STABLE_AFTER_MS } from '../../../domain/timing.ts';
import { ROTATING } from '../credentials/state.ts';
import { blockedBy } from '../disruption-view.ts';
import { entryOf, type MemberView, memberOf, nameOf, type Observed, readyCondition } from '../observed.ts';
import { votersOf } from '../quorum.ts';
import { cutOffMembers } from './expired.ts';
import { restartOrder } from './order.ts';
import { isEditReason, type Outdated, outdatedBecause } from './reasons.ts';
import { changesVersion } from './state.ts';
import { versionChangeBlockedBy, versionHeldBy } from './version-change.ts';

/**
 * Why it restarts now: without an edit whose version is held back, if there is another reason. A CA rotation must not wait until etcd
 * can be upgraded, and the member restarts for the edit later.
 */
function reasonsNow(o: Observed, m: MemberView): readonly Outdated[] {
  const reasons = outdatedBecause(o, m);
  const others = reasons.filter((each) => !isEditReason(each));
  return others.length > 0 && versionHeldBy(o, m) ? others : reasons;
}

const isHeld = (o: Observed, m: MemberView): boolean => reasonsNow(o, m).every(isEditReason) && !!versionHeldBy(o, m);

/** The outdated member that restarts next, although it may have to wait. One whose edit is held back keeps no other one waiting. */
export function nextToRestart(o: Observed): MemberView | undefined {
  const outdated = o.members.filter((m) => outdatedBecause(o, m).length > 0);
  const ready = outdated.filter((m) => !isHeld(o, m));
  return restartOrder(o, ready.length > 0 ? ready : outdated)[0];
}

/** For how long all voters must still be ready before the next one is restarted for an edit: an error may show only after a while. */
export function settlesInMs(o: Observed): number {
  const { minReadySeconds = 0 } = o.cluster.spec.updateStrategy ?? {};
  const left = votersOf(o).map((entry) => {
    const m = memberOf(o, entry);
    const since = Date.parse((m && readyCondition(m.object)?.lastTransitionTime) ?? '') || 0;
    // One that crashes again and again is ready for a while each time.
    const settleMs = m?.pod.is === 'present' && m.pod.restarted === true ? STABLE_AFTER_MS : SETTLE_MS;
    return Math.max(settleMs, minReadySeconds * 1_000) - (o.now - since);
  });
  return Math.max(0, ...left);
}

const unsettled = (o: Observed): Blocked | undefined =>
  settlesInMs(o) > 0
    ? { reason: 'NotSettled', message: 'all members must be ready for a while before the next one is restarted' }
    : undefined;

/** What an edit waits for, and a CA rotation does not. */
function editBlockedBy(o: Observed, m: MemberView): Blocked | undefined {
  const reasons = reasonsNow(o, m);
  if (reasons.some(({ reason }) => reason === ROTATING)) return undefined;
  return unsettled(o) ?? (reasons.every(isEditReason) && changesVersion(o, m) ? versionChangeBlockedBy(o) : undefined);
}

function rollingBlockedBy(o: Observed): Blocked | undefined {
  const next = nextToRestart(o);
  return next && (blockedBy(o, entryOf(o, next)?.id, 'restart') ?? editBlockedBy(o, next));
}

/** Why the next outdated member is not restarted now; `undefined` when it is, or when none is outdated. */
export function restartBlockedBy(o: Observed): Blocked | undefined {
  const cutOff = cutOffMembers(o);
  return cutOff.length > 0 ? cutOff.find((each) => each.blockedBy)?.blockedBy : rollingBlockedBy(o);
}

export interface Candidate {
  readonly m: MemberView;
  readonly reasons: readonly Outdated[];
}

/** The member that is restarted now. Whether the cluster is at rest is among the requirements of a restart, not left to the place of a rule. */
export function restartCandidate(o: Observed): Candidate | undefined {
  const m = rollingBlockedBy(o) === undefined ? nextToRestart(o) : undefined;
  return m && { m, reasons: reasonsNow(o, m) };
}

/** Of the next member, for the condition. */
export const waitsFor = (o: Observed): string | undefined => {
  const next = nextToRestart(o);
  const blocked = next && restartBlockedBy(o);
  return blocked && `${nameOf(next)} is next and waits: ${blocked.message}`;
};
