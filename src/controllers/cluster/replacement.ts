/** Which members will not recover by themselves, and whether each may be replaced now: with failure evidence, after the disruption check, and counted. */
import { RATE_LIMITED } from '../../domain/disruption.ts';
import { iso } from '../../lib/time.ts';
import { refTo } from '../../runtime/plan.ts';
import { blockedBy } from './disruption-view.ts';
import {
  type ClusterDecision,
  entriesOf,
  entryOf,
  evidence,
  isNotBeingDeleted,
  type MemberView,
  nameOf,
  type Observed,
} from './observed.ts';
import { quarantineSteps } from './quarantine.ts';
import { isCorrupt, isHealthy } from './quorum.ts';
import { currentRepair, failedReplacements, hasFailedTooOften } from './replacement-back-off.ts';
import { recordedReplacements } from './replacement-rate.ts';
import { isEvidenceSuspended } from './rollout/failure.ts';

/** When the first replacement of the present failure started. */
const sinceOf = (o: Observed): string => currentRepair(o)?.since ?? currentRepair(o)?.last ?? iso(o.now);

/**
 * The count is recorded before the deletion, so that a crash does not reset it. The resourceVersion makes the deletion fail if the
 * EtcdMember has changed: a member that has just recovered keeps its PVC.
 */
export const replacing = (
  o: Observed,
  m: MemberView,
  message: string,
  count = Math.max(failedReplacements(o, m) + 1, currentRepair(o)?.count ?? 0),
): ClusterDecision => ({
  message,
  latch: {
    repair: {
      count,
      last: iso(o.now),
      since: sinceOf(o),
      generation: o.cluster.metadata.generation ?? 0,
      ...recordedReplacements(o, m),
    },
  },
  steps: [
    ...quarantineSteps(o, m, isCorrupt(o, m) ? 'Corrupt' : evidence(m)?.reason),
    { do: 'delete', what: refTo('EtcdMember', m.object, { resourceVersion: true }) },
  ],
  event: { type: 'Warning', reason: 'ReplacingMember', note: message },
});

function failure(m: MemberView): string | undefined {
  const found = evidence(m);
  return found && `${nameOf(m)} (${found.reason}): ${found.message}`;
}

/** Why a member will not recover by itself, or `undefined`. A member that is healthy now has recovered. */
export function lossOf(o: Observed, m: MemberView): string | undefined {
  if (!isNotBeingDeleted(m) || entryOf(o, m) === undefined || isHealthy(o, m)) return undefined;
  if (isCorrupt(o, m)) return `${nameOf(m)} (Corrupt): its data differs from the data of a quorum`;
  return isEvidenceSuspended(o, m) ? undefined : failure(m);
}

/** Deleting such a cluster would destroy the data that its other members still have. */
const NO_RESPONSE =
  'etcd does not respond. Bring back the missing nodes or volumes. If that is not possible, do not delete this EtcdCluster yet: an EtcdSnapshot of it may still work as long as one member runs, and can be restored into a new EtcdCluster, as can an earlier one';

/** Lost members that are not replaced now, as sentences for conditions. */
export const waitingLosses = (o: Observed): readonly string[] =>
  o.members.flatMap((m) => {
    const listed = entriesOf(o) !== undefined;
    const loss = listed ? lossOf(o, m) : failure(m);
    if (loss === undefined) return [];
    const blocker = listed ? blockedBy(o, entryOf(o, m)?.id, 'replace')?.message : NO_RESPONSE;
    return [blocker === undefined ? loss : `${loss}; it is not replaced now: ${blocker}`];
  });

/** Whether the operator has given up replacing a member. */
export const isExhausted = (o: Observed): boolean =>
  o.members.some((m) => lossOf(o, m) !== undefined && hasFailedTooOften(o, m));

/** Whether a member waits because too many of other clusters were replaced. */
export const isRateLimited = (o: Observed): boolean =>
  o.members.some(
    (m) => lossOf(o, m) !== undefined && blockedBy(o, entryOf(o, m)?.id, 'replace')?.reason === RATE_LIMITED,
  );
