/** Restores a stored snapshot on trial. */

import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { identity } from '../../../domain/ownership.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { drillJob } from '../build.ts';
import { type Observed } from '../observed.ts';
import { drillInput, isBusy, isDrillToBeMade } from '../stored-jobs.ts';

/** Not while a Job removes: it was made with the snapshot to protect, and would remove one that this drill restores. */
export function drill(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  if (!isDrillToBeMade(o) || isBusy(o, 'drill') || isBusy(o, 'prune')) return undefined;
  const found = drillInput(o);
  if (typeof found === 'string') return undefined;
  const { object: schedule, operatorImage, images } = o;
  const object = drillJob({ schedule, operatorImage, images, ...found });
  return { message: `${identity(found.run).name} is to be tried out`, steps: [{ do: 'create', object }] };
}
