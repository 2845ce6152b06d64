/** Whether a snapshot is due now, and if not, why. The rules and the status share the result, so that they cannot disagree. */

import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { type DueTime, type DueTimes, dueTimesOf, type Recurring, startedUntil } from '../../domain/due-times.ts';
import { identity } from '../../domain/ownership.ts';
import { isPaused } from '../../domain/paused.ts';
import { MIN_STARTING_DEADLINE_MS } from '../../domain/timing.ts';
import { parseCron } from '../../lib/cron.ts';
import { iso } from '../../lib/time.ts';
import { dueTimeIn, isActive, newestRun, type Observed, statusBefore } from './observed.ts';

export type Scheduling =
  /** Nothing is scheduled. */
  | { readonly is: 'off'; readonly reason: string; readonly message: string }
  /** Nothing is due. */
  | { readonly is: 'idle'; readonly dueTimes: DueTimes }
  /** One was due, but startingDeadlineSeconds has passed. */
  | { readonly is: 'tooLate'; readonly dueTimes: DueTimes; readonly late: DueTime }
  | {
      readonly is: 'held';
      readonly dueTimes: DueTimes;
      readonly held: DueTime;
      readonly reason: string;
      readonly message: string;
    }
  | {
      readonly is: 'due';
      readonly dueTimes: DueTimes;
      readonly due: DueTime;
      /** Active snapshots to delete first. */
      readonly instead: readonly EtcdSnapshot[];
    };

/** The last scheduled minute for which a snapshot was started; existing runs prove it if the status was not written. */
export function lastStarted(o: Observed): number | undefined {
  const recorded = startedUntil(statusBefore(o).lastScheduleTime, o.now);
  const newest = newestRun(o, () => true);
  const proven = newest && dueTimeIn(o, identity(newest).name);
  return recorded === undefined || proven === undefined ? (recorded ?? proven) : Math.max(recorded, proven);
}

/** status.nextScheduleTime. */
export const announced = (o: Observed): number => Date.parse(statusBefore(o).nextScheduleTime ?? '') || Infinity;

const recurring = ({ object: { metadata, spec } }: Observed): Recurring => ({
  seed: metadata.uid ?? '',
  creationTimestamp: metadata.creationTimestamp,
  spreadSeconds: spec.jitterSeconds ?? 0,
});

export function schedulingOf(o: Observed): Scheduling {
  const table = parseCron(o.object.spec.schedule, o.object.spec.timeZone);
  if (!table.ok) return off('InvalidSchedule', `spec.schedule is invalid, no snapshot is started: ${table.message}`);
  const reason = offReason(o);
  if (reason) return reason;
  const immediately = o.object.spec.immediate === true && o.cluster?.status?.clusterID !== undefined;
  const times = { now: o.now, lastStarted: lastStarted(o), announced: announced(o), immediately };
  const dueTimes = dueTimesOf(table.cron, recurring(o), times);
  const { due } = dueTimes;
  if (!due) return { is: 'idle', dueTimes };
  const deadline = o.object.spec.startingDeadlineSeconds;
  if (deadline !== undefined && o.now - due.at > Math.max(deadline * 1000, MIN_STARTING_DEADLINE_MS))
    return { is: 'tooLate', dueTimes, late: due };
  return o.due.is === 'absent' ? concurrently(o, dueTimes, due) : taken(o, dueTimes, due);
}

const off = (reason: string, message: string): Scheduling => ({ is: 'off', reason, message });

function offReason(o: Observed): Scheduling | undefined {
  const { suspend, clusterRef } = o.object.spec;
  if (suspend === true) return off('Suspended', 'spec.suspend is true: no snapshot is started');
  if (!o.cluster || o.cluster.metadata.deletionTimestamp !== undefined)
    return off(
      'ClusterNotFound',
      `EtcdCluster ${clusterRef.name} does not exist in this namespace: no snapshot is started`,
    );
  if (isPaused(o.cluster))
    return off('ClusterParked', `EtcdCluster ${clusterRef.name} is paused (replicas 0): no snapshot is started`);
  return undefined;
}

const taken = (o: Observed, dueTimes: DueTimes, held: DueTime): Scheduling => {
  const owner = o.due.is === 'foreign' ? `belongs to ${o.due.owner}` : 'is ours, and is not in the cache yet';
  const message = `the snapshot of ${iso(held.slot)} cannot be created, because an EtcdSnapshot of its name ${owner}: the next one has another name`;
  return { is: 'held', dueTimes, held, reason: 'NameConflict', message };
};

function concurrently(o: Observed, dueTimes: DueTimes, due: DueTime): Scheduling {
  const active = o.runs.filter(isActive);
  const policy = o.object.spec.concurrencyPolicy ?? 'Forbid';
  const [first] = active;
  if (!first || policy === 'Allow') return { is: 'due', dueTimes, due, instead: [] };
  if (policy === 'Replace') return { is: 'due', dueTimes, due, instead: active };
  const message = `the snapshot of ${iso(due.slot)} waits until ${identity(first).name} has finished`;
  return { is: 'held', dueTimes, held: due, reason: 'WaitingForLast', message };
}
