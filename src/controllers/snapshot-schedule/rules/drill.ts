/** Creates the Job of a restore drill. */

import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { identity } from '../../../domain/ownership.ts';
import type { Decision } from '../../../runtime/plan.ts';
import { drillJob } from '../build.ts';
import { type Observed } from '../observed.ts';
import { drillInput, isBusy, isDrillToBeMade } from '../stored-jobs.ts';

/** Not while a prune Job runs: it protects the snapshot of the previous drill, and could remove the one that this drill restores. */
export function drill(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  if (!isDrillToBeMade(o) || isBusy(o, 'drill') || isBusy(o, 'prune')) return undefined;
  const found = drillInput(o);
  if (typeof found === 'string') return undefined;
  const { object: schedule, operatorImage, images } = o;
  const object = drillJob({ schedule, operatorImage, images, ...found });
  return { message: `starting a restore drill of ${identity(found.run).name}`, steps: [{ do: 'create', object }] };
}
