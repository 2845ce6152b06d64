/** Deletes EtcdSnapshots beyond the history limits; and the decision when nothing is due. */

import { type EtcdSnapshot, isCopyPending } from '../../../api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { etcdSnapshots } from '../../../api/names.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { type Decision, refTo } from '../../../runtime/plan.ts';
import { dueTimeIn, hasFailed, isStored, type Observed, SUCCESSFUL_HISTORY, statusBefore } from '../observed.ts';

const FAILED = 3;
/** With its EtcdSnapshot, its copy would not be tried again; a second store that is away for weeks must not pile them up. */
const MAX_COPY_PENDING = 20;

/** Only recorded EtcdSnapshots are deleted, and never those that a cluster may be restored from by the name of the schedule. */
export function trimHistory(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const { lastSuccessful, lastFailed, lastRestored } = statusBefore(o);
  const { successfulSnapshotsHistoryLimit = SUCCESSFUL_HISTORY, failedSnapshotsHistoryLimit = FAILED } = o.object.spec;
  const copyPending = o.runs.filter(isCopyPending).slice(-MAX_COPY_PENDING);
  const beyond = (ended: (run: EtcdSnapshot) => boolean, limit: number, recorded: string | undefined) => {
    const known = o.runs.filter(
      (run) => ended(run) && recorded !== undefined && dueTimeIn(o, identity(run).name) <= dueTimeIn(o, recorded),
    );
    return known.slice(0, Math.max(0, known.length - limit));
  };
  const old = [
    ...beyond(isStored, successfulSnapshotsHistoryLimit, lastSuccessful?.name),
    ...beyond(hasFailed, failedSnapshotsHistoryLimit, lastFailed?.name),
  ].filter(
    (run) =>
      !isBeingDeleted(run) &&
      !copyPending.includes(run) &&
      ![lastSuccessful?.name, lastRestored?.name].includes(identity(run).name),
  );
  if (old.length === 0) return undefined;
  return {
    message: `deleting EtcdSnapshots beyond the history limits: ${old.map((run) => identity(run).name).join(', ')}`,
    steps: old.map((run) => ({ do: 'delete', what: refTo(etcdSnapshots.kind, run) })),
  };
}

export const waitForNext = (o: Observed): Decision<EtcdSnapshotScheduleStatus> => ({
  message: `nothing is due for ${identity(o.object).name}`,
});
