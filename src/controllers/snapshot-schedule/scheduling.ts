/** Whether a snapshot is to begin now, and if not, why: what rules act on is what the status tells. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { identity } from '../../domain/ownership.ts';
import { iso } from '../../lib/time.ts';
import { type DueTime, type DueTimes, dueTimesOf, startedUntil, timetable } from './due-times.ts';
import { dueTimeIn, isActive, newestRun, type Observed, statusBefore } from './observed.ts';

export type Scheduling =
  /** Nothing is scheduled. */
  | { readonly is: 'off'; readonly reason: string; readonly why: string }
  /** Nothing is due. */
  | { readonly is: 'idle'; readonly slots: DueTimes }
  /** One was due, and it is too late for it. */
  | { readonly is: 'tooLate'; readonly slots: DueTimes; readonly late: DueTime }
  | {
      readonly is: 'held';
      readonly slots: DueTimes;
      readonly held: DueTime;
      readonly reason: string;
      readonly why: string;
    }
  | {
      readonly is: 'due';
      readonly slots: DueTimes;
      readonly due: DueTime;
      /** To be ended before. */
      readonly instead: readonly EtcdSnapshot[];
    };

/** However short the deadline: an operator that was busy for a moment is no reason to have no backup. */
const MIN_DEADLINE_MS = 10_000;

/** The last minute for which one was begun; its own runs prove it, should the record be missing. */
export function begun(o: Observed): number | undefined {
  const recorded = startedUntil(statusBefore(o).lastScheduleTime, o.now);
  const newest = newestRun(o, () => true);
  const proven = newest && dueTimeIn(o, identity(newest).name);
  return recorded === undefined || proven === undefined ? (recorded ?? proven) : Math.max(recorded, proven);
}

/** When the status said that the next one would be. */
export const announced = (o: Observed): number => Date.parse(statusBefore(o).nextScheduleTime ?? '') || Infinity;

export function schedulingOf(o: Observed): Scheduling {
  const table = timetable(o.object);
  if (!table.ok)
    return {
      is: 'off',
      reason: 'InvalidSchedule',
      why: `spec.schedule cannot be used, and nothing is started: ${table.why}`,
    };
  const off = reasonNotTo(o);
  if (off) return off;
  const slots = dueTimesOf(table.cron, o.object, { now: o.now, begun: begun(o), announced: announced(o) });
  const { due } = slots;
  if (!due) return { is: 'idle', slots };
  const deadline = o.object.spec.startingDeadlineSeconds;
  if (deadline !== undefined && o.now - due.at > Math.max(deadline * 1000, MIN_DEADLINE_MS))
    return { is: 'tooLate', slots, late: due };
  return o.due.is === 'absent' ? concurrently(o, slots, due) : taken(o, slots, due);
}

function reasonNotTo(o: Observed): Scheduling | undefined {
  const { suspend, clusterRef } = o.object.spec;
  const off = (reason: string, why: string): Scheduling => ({ is: 'off', reason, why });
  if (suspend === true) return off('Suspended', 'spec.suspend is true: nothing is started');
  if (!o.cluster || o.cluster.metadata.deletionTimestamp !== undefined)
    return off('ClusterNotFound', `there is no EtcdCluster ${clusterRef.name} in this namespace: nothing is started`);
  if (o.cluster.spec.replicas === 0)
    return off(
      'ClusterParked',
      `EtcdCluster ${clusterRef.name} has no members and does not change: nothing is started`,
    );
  return undefined;
}

const taken = (o: Observed, slots: DueTimes, held: DueTime): Scheduling => {
  const owner = o.due.is === 'foreign' ? `belongs to ${o.due.owner}` : 'is ours, and was not heard of yet';
  const why = `the snapshot of ${iso(held.slot)} cannot be made, because an EtcdSnapshot of its name ${owner}: the next one has another name`;
  return { is: 'held', slots, held, reason: 'NameConflict', why };
};

function concurrently(o: Observed, slots: DueTimes, due: DueTime): Scheduling {
  const active = o.runs.filter(isActive);
  const policy = o.object.spec.concurrencyPolicy ?? 'Forbid';
  const [first] = active;
  if (!first || policy === 'Allow') return { is: 'due', slots, due, instead: [] };
  if (policy === 'Replace') return { is: 'due', slots, due, instead: active };
  const why = `the snapshot of ${iso(due.slot)} waits until ${identity(first).name} has ended`;
  return { is: 'held', slots, held: due, reason: 'WaitingForLast', why };
}
