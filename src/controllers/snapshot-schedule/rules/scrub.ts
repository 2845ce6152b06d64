/** Creates the Job of a scrub. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { scrubJob } from '../build-scrub.ts';
import { isStored, type Observed, statusBefore } from '../observed.ts';
import { scrubBlockedBy, scrubIntervalMs, scrubResult } from '../scrubbing.ts';
import { isBusy, jobOwner } from '../stored-jobs.ts';

/** Not while a prune Job runs, which could remove the snapshot that is read; nor beside a drill, which downloads as well. */
export function scrub(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const due = statusBefore(o).nextScrubTime;
  const cluster = jobOwner(o);
  if (scrubIntervalMs(o.object) === undefined || due === undefined || !cluster || scrubBlockedBy(o) !== undefined)
    return undefined;
  if (scrubResult(o) !== undefined || isBusy(o, 'scrub') || isBusy(o, 'prune') || isBusy(o, 'drill')) return undefined;
  const { object: schedule, operatorImage, now } = o;
  const object = scrubJob({ schedule, cluster, operatorImage, due, runs: o.runs.filter(isStored), now });
  return { message: `starting the scrub of ${due}`, steps: [{ do: 'create', object }] };
}
