/** The status, condition and Events of a policy, computed in every reconcile whichever rule decided. */
import type { EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { type ConditionUpdate, changedConditions, findCondition, updateConditions } from '../../domain/conditions.ts';
import { MAX_MISSED } from '../../domain/due-times.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { MAX_REQUEUE_MS } from '../../domain/timing.ts';
import { iso } from '../../lib/time.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { isActive, type Observed, statusBefore } from './observed.ts';
import { historyOf } from './run-history.ts';
import { announced, type Scheduling, schedulingOf } from './scheduling.ts';

export const ACTIVE = 'Active';

export function statusOf(o: Observed): EtcdDefragPolicyStatus {
  const before = statusBefore(o);
  if (isBeingDeleted(o.object)) return before;
  const { nextScheduleTime: _next, active: _active, ...rest } = before;
  const scheduling = schedulingOf(o);
  const next = nextTime(o, scheduling);
  const active = o.runs.filter(isActive).map((run) => ({ name: identity(run).name }));
  const at = { generation: o.object.metadata.generation, now: iso(o.now) };
  return {
    ...rest,
    ...historyOf(o),
    ...(next !== undefined && { nextScheduleTime: iso(next) }),
    ...(active.length > 0 && { active }),
    conditions: [...updateConditions(before.conditions, [condition(o, scheduling)], at)],
  };
}

/** A run that waits for another one is still the next. */
function nextTime(o: Observed, scheduling: Scheduling): number | undefined {
  if (scheduling.is === 'off') return undefined;
  if (scheduling.is !== 'held') return scheduling.dueTimes.next?.at;
  return announced(o) <= o.now ? announced(o) : scheduling.held.at;
}

function condition(o: Observed, scheduling: Scheduling): ConditionUpdate {
  const type = ACTIVE;
  if (scheduling.is === 'off') return { type, status: 'False', reason: scheduling.reason, message: scheduling.message };
  if (o.refusal !== undefined)
    return { type, status: 'False', reason: 'Refused', message: `no EtcdDefrag can be created: ${o.refusal}` };
  if (scheduling.is === 'held') return { type, status: 'True', reason: 'Scheduled', message: scheduling.message };
  const next = scheduling.dueTimes.next?.at;
  const message = next === undefined ? 'no run is scheduled any more' : `the next run starts at ${iso(next)}`;
  return { type, status: 'True', reason: 'Scheduled', message };
}

export function eventsFor(o: Observed, after: EtcdDefragPolicyStatus): readonly EventRecord[] {
  if (isBeingDeleted(o.object)) return [];
  const changed = changedConditions(statusBefore(o).conditions, after.conditions)
    .filter(({ status }) => status === 'False')
    .map(({ reason, message }): EventRecord => {
      const type = reason === 'Suspended' ? 'Normal' : 'Warning';
      return { type, reason, note: message };
    });
  return [...changed, ...heldEvent(o, after), ...missedEvent(o)];
}

/** Once, when it begins to wait. */
function heldEvent(o: Observed, after: EtcdDefragPolicyStatus): readonly EventRecord[] {
  const scheduling = schedulingOf(o);
  const before = findCondition(statusBefore(o).conditions, ACTIVE)?.message;
  const now = findCondition(after.conditions, ACTIVE)?.message;
  return scheduling.is === 'held' && before !== now
    ? [{ type: 'Normal', reason: 'ConcurrencyForbidden', note: scheduling.message }]
    : [];
}

/** In the reconcile that writes the next nextScheduleTime, and not about times at which the policy was off. */
function missedEvent(o: Observed): readonly EventRecord[] {
  const previous = findCondition(statusBefore(o).conditions, ACTIVE);
  const scheduling = schedulingOf(o);
  const wasOn = previous?.status === 'True' && previous.observedGeneration === o.object.metadata.generation;
  if (!wasOn || scheduling.is === 'off' || scheduling.is === 'held') return [];
  const { missed } = scheduling.dueTimes;
  const count = scheduling.is === 'due' ? missed - 1 : missed;
  if (count <= 0) return [];
  const many = missed >= MAX_MISSED ? `${MAX_MISSED} or more` : `${count}`;
  const now =
    scheduling.is === 'due'
      ? `only that of ${iso(scheduling.due.slot)} starts now`
      : 'startingDeadlineSeconds has passed';
  return [
    { type: 'Warning', reason: 'MissedSchedule', note: `${many} runs were missed since ${iso(announced(o))}: ${now}` },
  ];
}

/** Requeue exactly when the next run is due. */
export function requeueAfterMs(o: Observed): number {
  const scheduling = schedulingOf(o);
  const next = scheduling.is === 'off' ? undefined : scheduling.dueTimes.next?.at;
  return next === undefined ? MAX_REQUEUE_MS : Math.min(MAX_REQUEUE_MS, Math.max(0, next - o.now));
}
