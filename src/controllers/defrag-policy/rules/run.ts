/** Creates the EtcdDefrag that is due, and deletes those beyond the history limit. */
import type { EtcdDefragPolicyStatus } from '../../../api/etcd-defrag-policy.ts';
import { etcdDefrags } from '../../../api/names.ts';
import { isFinished } from '../../../domain/defragmentation.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import { type Decision, refTo } from '../../../runtime/plan.ts';
import { scheduledDefrag } from '../build.ts';
import { type Observed, statusBefore } from '../observed.ts';
import { historyOf } from '../run-history.ts';
import { schedulingOf } from '../scheduling.ts';

type Decided = Decision<EtcdDefragPolicyStatus> | undefined;

export const beingDeleted = (o: Observed): Decided =>
  isBeingDeleted(o.object) ? { message: 'the policy is being deleted' } : undefined;

export function record(o: Observed): Decided {
  const { lastScheduleTime, lastSuccessfulTime } = statusBefore(o);
  const latch = historyOf(o);
  const before = { ...(lastScheduleTime && { lastScheduleTime }), ...(lastSuccessfulTime && { lastSuccessfulTime }) };
  return sameJson(before, latch) ? undefined : { message: 'recording the runs', latch };
}

/** The name is derived from the scheduled time, so a retry after a crash gets AlreadyExists instead of a second run. */
export function startRun(o: Observed): Decided {
  const scheduling = schedulingOf(o);
  if (scheduling.is !== 'due') return undefined;
  const object = scheduledDefrag(o.object, scheduling.due.slot);
  const message = `creating EtcdDefrag ${identity(object).name}`;
  return { message, steps: [{ do: 'create', object }], event: { type: 'Normal', reason: 'StampedRun', note: message } };
}

export function trimHistory(o: Observed): Decided {
  const { historyLimit } = o.object.spec;
  if (historyLimit === undefined) return undefined;
  const ended = o.runs.filter((run) => isFinished(run) && !isBeingDeleted(run));
  const old = ended.slice(0, Math.max(0, ended.length - historyLimit));
  if (old.length === 0) return undefined;
  return {
    message: `deleting EtcdDefrags beyond historyLimit: ${old.map((run) => identity(run).name).join(', ')}`,
    steps: old.map((run) => ({ do: 'delete', what: refTo(etcdDefrags.kind, run) })),
  };
}

export const waitForNext = (o: Observed): Decision<EtcdDefragPolicyStatus> => ({
  message: `nothing is due for ${identity(o.object).name}`,
});
