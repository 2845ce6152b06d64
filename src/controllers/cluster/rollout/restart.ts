/** How one member is restarted, whatever the reason: out of the client Service, leadership transferred, then its Pod deleted. */
import { DRAINING_ANNOTATION, OLD_DRAINING_ANNOTATION, ROLE_LABEL } from '../../../api/names.ts';
import { DRAIN_MS, PRE_STOP_SECONDS } from '../../../domain/timing.ts';
import { iso } from '../../../lib/time.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { transferFirst } from '../etcd-calls.ts';
import { type ClusterDecision, entryOf, isInMemory, type MemberView, type Observed } from '../observed.ts';
import { votersOf } from '../quorum.ts';
import { progressDeadline } from '../spec-drift.ts';
import { editedRollout } from './edit.ts';
import { podOf } from './pod-ref.ts';
import { givenFields, updateSteps } from './update.ts';
import { recordedChecks } from './version-change.ts';

export interface Restart {
  readonly m: MemberView;
  readonly message: string;
  /** Reason of the Event. */
  readonly reason: string;
}

export const restarting = (o: Observed, restart: Restart): ClusterDecision => ({
  ...nextStep(o, restart),
  restarts: restart.m,
});

function nextStep(o: Observed, { m, message, reason }: Restart): ClusterDecision {
  const entry = entryOf(o, m);
  const transfer = transferFirst(o, entry?.id, message);
  if (transfer) return transfer;
  const votes = entry?.isLearner === false;
  const needsNoDrain = !votes || isInMemory(m) || votersOf(o).length === 1 || drainsItself(m);
  const drainedMs = needsNoDrain ? DRAIN_MS : drainingForMs(o, m);
  if (drainedMs === undefined)
    return {
      message: `${message}; taking it out of the client Service first`,
      steps: [trafficPatch(m, iso(o.now), null)],
    };
  if (drainedMs < DRAIN_MS)
    return { message: `${message}; taking it out of the client Service first`, requeueAfterMs: DRAIN_MS - drainedMs };
  // Data in memory is lost with the Pod, which would come back empty: the whole member is replaced.
  const isReplaced = votes && isInMemory(m);
  if (isReplaced && editedRollout(o)) return { message: `${message}; recording the edit first` };
  const updates = isReplaced ? [] : updateSteps(o, m);
  const what = isReplaced ? refTo('EtcdMember', m.object) : podOf(m);
  // Not again with the deletion of the Pod: the same latch twice for each member looks like a write that another one reverts.
  const deadline = isReplaced || updates.length > 0 ? deadlineOf(o, m).latch : undefined;
  const latch = { ...deadline, ...(isReplaced && recordedChecks(o, m)) };
  return {
    message,
    ...(Object.keys(latch).length > 0 && { latch }),
    ...(updates.length > 0
      ? { steps: updates }
      : { steps: [{ do: 'delete', what }], event: { type: 'Normal', reason, note: message } }),
  };
}

/** A member that is not ready by then with the fields that it gets now has failed, and the rollout stops. */
export const deadlineOf = (o: Observed, m: MemberView): Pick<ClusterDecision, 'latch'> =>
  givenFields(o, m).length > 0 ? { latch: { progressDeadline: progressDeadline(o) } } : {};

/** Its Pod leaves the client Service when it is deleted, and its etcd goes on for a while. */
const drainsItself = ({ pod }: MemberView): boolean =>
  pod.is === 'present' && (pod.preStopMs ?? 0) >= PRE_STOP_SECONDS * 1_000;

/** A clock that was set back does not keep the member out of the Service. */
export const drainingForMs = (o: Observed, { pod }: MemberView): number | undefined =>
  pod.is === 'present' && pod.terminating !== true && pod.drainingSince !== undefined
    ? Math.abs(o.now - pod.drainingSince)
    : undefined;

export const trafficPatch = (m: MemberView, since: string | null, role: string | null): Step => ({
  do: 'patch',
  to: podOf(m),
  fields: {
    metadata: {
      labels: { [ROLE_LABEL]: role },
      annotations: { [DRAINING_ANNOTATION]: since, ...(since === null && { [OLD_DRAINING_ANNOTATION]: null }) },
    },
  },
});
