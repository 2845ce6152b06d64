/** Creates the EtcdSnapshot that is due. */
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { etcdSnapshots } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { scheduledSnapshot } from '../../../domain/scheduled-snapshot.ts';
import { iso } from '../../../lib/time.ts';
import { type Decision, refTo, type Step } from '../../../runtime/plan.ts';
import type { Observed } from '../observed.ts';
import { schedulingOf } from '../scheduling.ts';

/**
 * The name is derived from the scheduled minute, so a retry after a crash gets AlreadyExists instead of a second snapshot.
 * Recording the start first would lose the snapshot if the operator crashed in between.
 */
export function startSnapshot(o: Observed): Decision<EtcdSnapshotScheduleStatus> | undefined {
  const scheduling = schedulingOf(o);
  if (scheduling.is !== 'due') return undefined;
  const { due, instead } = scheduling;
  const ended = instead.map((run): Step => ({ do: 'delete', what: refTo(etcdSnapshots.kind, run) }));
  const replaced = instead.length === 0 ? '' : `, instead of ${instead.map((run) => identity(run).name).join(', ')}`;
  return {
    message: `creating the snapshot of ${iso(due.slot)}${replaced}`,
    steps: [...ended, { do: 'create', object: scheduledSnapshot(o.object, due.slot) }],
  };
}
