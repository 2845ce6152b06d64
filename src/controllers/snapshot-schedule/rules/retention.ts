/** Creates the Job that removes snapshots beyond the retention. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { pruneJob } from '../build.ts';
import { copyPruneDue } from '../copies.ts';
import { isStored, type Observed, statusBefore } from '../observed.ts';
import { isPruned } from '../run-history.ts';
import { isBusy, isMade, jobOwner, pruneBlockedBy } from '../stored-jobs.ts';

/** Not while a drill or a scrub reads a snapshot, which would then look damaged. */
export function prune(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const { retention } = o.object.spec;
  if (pruneBlockedBy(o) !== undefined || isBusy(o, 'drill') || isBusy(o, 'scrub')) return undefined;
  const run = statusBefore(o).lastSuccessful?.name;
  const cluster = jobOwner(o);
  if (!retention || run === undefined || !cluster || isPruned(o) || isMade(o, 'prune', run) || isBusy(o, 'prune'))
    return undefined;
  const { object: schedule, operatorImage, now } = o;
  const runs = o.runs.filter(isStored);
  const object = pruneJob({ schedule, cluster, operatorImage, run, runs, retention, now });
  return { message: `applying the retention after ${run}`, steps: [{ do: 'create', object }] };
}

/** The drills of the first location count here as well, also one that still runs: a copy is the same bytes. */
export function pruneCopies(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const { copyTo } = o.object.spec;
  const [run, cluster] = [copyPruneDue(o), jobOwner(o)];
  if (
    !copyTo?.retention ||
    run === undefined ||
    !cluster ||
    o.copiesNotPermitted !== undefined ||
    pruneBlockedBy(o) !== undefined ||
    isBusy(o, 'drill') ||
    isBusy(o, 'prune')
  )
    return undefined;
  const { object: schedule, operatorImage, now } = o;
  const runs = o.runs.filter(isStored);
  const { retention } = copyTo;
  const object = pruneJob({ schedule, cluster, operatorImage, run, runs, retention, ofCopies: true, now });
  return { message: `applying the retention of the copies after ${run}`, steps: [{ do: 'create', object }] };
}
