/** What has happened is recorded before what tells of it is removed, or anything follows from it. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { isBeingDeleted } from '../../../domain/ownership.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { type Observed, statusBefore } from '../observed.ts';
import { type RunHistory, runHistoryOf } from '../run-history.ts';

/** Kubernetes removes what belongs to it. */
export const beingDeleted = (o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined =>
  isBeingDeleted(o.object) ? { message: 'the schedule is being deleted: stored snapshots stay' } : undefined;

const RECORDED: readonly (keyof RunHistory)[] = [
  'lastScheduleTime',
  'lastSuccessful',
  'lastFailed',
  'successes',
  'stored',
  'lastDrill',
  'lastRestored',
];

export function record(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const [before, facts] = [statusBefore(o), runHistoryOf(o)];
  const news = RECORDED.filter((field) => !sameJson(before[field], facts[field]));
  if (news.length === 0) return undefined;
  const latch = Object.fromEntries(news.map((field) => [field, facts[field]])) as RunHistory;
  return { message: `news of ${news.join(', ')}`, latch };
}
