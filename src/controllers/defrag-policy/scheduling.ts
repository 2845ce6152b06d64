/** Whether a defragmentation is due now, and if not, why. The rules and the status share the result, so that they cannot disagree. */
import { type DueTime, type DueTimes, dueTimesOf, startedUntil } from '../../domain/due-times.ts';
import { identity } from '../../domain/ownership.ts';
import { MIN_STARTING_DEADLINE_MS } from '../../domain/timing.ts';
import { parseCron } from '../../lib/cron.ts';
import { iso } from '../../lib/time.ts';
import { isActive, type Observed, slotIn, statusBefore } from './observed.ts';

export type Scheduling =
  /** Nothing is scheduled. */
  | { readonly is: 'off'; readonly reason: 'InvalidSchedule' | 'Suspended'; readonly message: string }
  /** Nothing is due. */
  | { readonly is: 'idle'; readonly dueTimes: DueTimes }
  /** One was due, but startingDeadlineSeconds has passed. */
  | { readonly is: 'tooLate'; readonly dueTimes: DueTimes; readonly late: DueTime }
  /** One is due, and has to wait. */
  | { readonly is: 'held'; readonly dueTimes: DueTimes; readonly held: DueTime; readonly message: string }
  | { readonly is: 'due'; readonly dueTimes: DueTimes; readonly due: DueTime };

/** The last scheduled time for which a run was started; existing runs prove it if the status was not written. */
export function lastStarted(o: Observed): number | undefined {
  const recorded = startedUntil(statusBefore(o).lastScheduleTime, o.now);
  const proven = Math.max(...o.runs.map((run) => slotIn(o, run)).filter((slot) => slot <= o.now));
  const known = [recorded ?? Number.NEGATIVE_INFINITY, proven].filter(Number.isFinite);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** status.nextScheduleTime. */
export const announced = (o: Observed): number => Date.parse(statusBefore(o).nextScheduleTime ?? '') || Infinity;

export function schedulingOf(o: Observed): Scheduling {
  const { metadata, spec } = o.object;
  const table = parseCron(spec.schedule, spec.timeZone);
  if (!table.ok) {
    const message = `spec.schedule is invalid, nothing is defragmented: ${table.message}`;
    return { is: 'off', reason: 'InvalidSchedule', message };
  }
  if (spec.suspend === true)
    return { is: 'off', reason: 'Suspended', message: 'spec.suspend is true: nothing is defragmented' };
  const recurring = {
    // Two policies of one cluster at the same time would only wait for each other.
    seed: `${metadata.namespace}/${spec.clusterRef.name}`,
    creationTimestamp: metadata.creationTimestamp,
    spreadSeconds: spec.windowSeconds ?? 0,
  };
  const times = { now: o.now, lastStarted: lastStarted(o), announced: announced(o) };
  const dueTimes = dueTimesOf(table.cron, recurring, times);
  const { due } = dueTimes;
  if (!due) return { is: 'idle', dueTimes };
  const deadline = spec.startingDeadlineSeconds;
  if (deadline !== undefined && o.now - due.at > Math.max(deadline * 1000, MIN_STARTING_DEADLINE_MS))
    return { is: 'tooLate', dueTimes, late: due };
  const message = heldBecause(o, due);
  return message === undefined ? { is: 'due', dueTimes, due } : { is: 'held', dueTimes, held: due, message };
}

function heldBecause(o: Observed, due: DueTime): string | undefined {
  if (o.due.is !== 'absent') {
    const owner = o.due.is === 'foreign' ? `belongs to ${o.due.owner}` : 'is ours, and is not in the cache yet';
    return `the run of ${iso(due.slot)} cannot be created, because an EtcdDefrag of its name ${owner}: the next one has another name`;
  }
  const active = o.object.spec.concurrencyPolicy === 'Allow' ? undefined : o.runs.find(isActive);
  return active && `the run of ${iso(due.slot)} waits until ${identity(active).name} has finished`;
}
