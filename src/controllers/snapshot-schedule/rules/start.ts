/** Snapshots that are due. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { etcdSnapshots } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { iso } from '../../../lib/time.ts';
import { type Decision, refTo, type Step } from '../../../runtime/plan.ts';
import { scheduledSnapshot } from '../build.ts';
import type { Observed } from '../observed.ts';
import { schedulingOf } from '../scheduling.ts';

/**
 * Its name is that of the minute. Whoever dies after this, or does not hear of it, finds it: nothing has to be recorded before,
 * and what was recorded before would be a snapshot that nobody takes.
 */
export function startSnapshot(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const scheduling = schedulingOf(o);
  if (scheduling.is !== 'due') return undefined;
  const { due, instead } = scheduling;
  const ended = instead.map((run): Step => ({ do: 'delete', what: refTo(etcdSnapshots.kind, run) }));
  const replaced = instead.length === 0 ? '' : `, instead of ${instead.map((run) => identity(run).name).join(', ')}`;
  return {
    message: `the snapshot of ${iso(due.slot)} is due${replaced}`,
    steps: [...ended, { do: 'create', object: scheduledSnapshot(o.object, due.slot) }],
  };
}
