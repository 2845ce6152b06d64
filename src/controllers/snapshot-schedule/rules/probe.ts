/** Creates the Job that tries the destination. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { probeJob } from '../build-probe.ts';
import { isProbeDue } from '../location.ts';
import type { Observed } from '../observed.ts';
import { jobOwner } from '../stored-jobs.ts';

/** Also of a suspended schedule: a user wants to know before resuming it. */
export function probe(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const { location, object: schedule, operatorImage } = o;
  const cluster = jobOwner(o);
  if (location === undefined || !cluster || !isProbeDue(o)) return undefined;
  const object = probeJob({ schedule, cluster, operatorImage, location });
  return { message: 'trying the destination', steps: [{ do: 'create', object }] };
}
