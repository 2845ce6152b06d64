/** Results are recorded in the status before the objects that prove them are deleted, or a rule acts on them. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { isBeingDeleted } from '../../../domain/ownership.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { type Observed, statusBefore } from '../observed.ts';
import { RECORDED, type RunHistory, runHistoryOf } from '../run-history.ts';

/** The garbage collector deletes its EtcdSnapshots and Jobs. */
export const beingDeleted = (o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined =>
  isBeingDeleted(o.object) ? { message: 'the schedule is being deleted: stored snapshots are kept' } : undefined;

export function record(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const [before, facts] = [statusBefore(o), runHistoryOf(o)];
  const changed = RECORDED.filter((field) => !sameJson(before[field], facts[field]));
  if (changed.length === 0) return undefined;
  const latch = Object.fromEntries(changed.map((field) => [field, facts[field]])) as RunHistory;
  return { message: `recording ${changed.join(', ')}`, latch };
}
