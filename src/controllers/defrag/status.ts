/** The status, condition and Events of an EtcdDefrag. The cluster controller writes `members` and `waitingFor`. */
import type { EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { changedConditions, updateConditions } from '../../domain/conditions.ts';
import { iso } from '../../lib/time.ts';
import type { Decision, EventRecord } from '../../runtime/plan.ts';
import { isFull, membersOf, type Observed, statusBefore, withOutcome } from './observed.ts';

export const DEFRAG_CHECKED = 'DefragChecked';

export type DefragReason =
  | 'Queued'
  | 'ClusterNotHealthy'
  | 'Running'
  | 'Complete'
  | 'MemberFailed'
  | 'DeadlineExceeded'
  | 'ClusterNotFound';

export interface DefragDecision extends Decision<EtcdDefragStatus> {
  /** Absent: the status does not change. */
  readonly becomes?: {
    readonly phase: 'Pending' | 'Running' | 'Complete' | 'Failed';
    readonly reason: DefragReason;
    /** It waits for no other EtcdDefrag of its cluster. */
    readonly admitted?: boolean;
  };
}

const isTrue = (reason: DefragReason): boolean => reason === 'Running' || reason === 'Complete';

export function statusOf(o: Observed, { message, becomes }: DefragDecision): EtcdDefragStatus {
  const before = statusBefore(o);
  if (!becomes) return before;
  const { phase, reason, admitted = true } = becomes;
  const now = iso(o.now);
  const isOver = phase === 'Complete' || phase === 'Failed';
  const condition = { type: DEFRAG_CHECKED, status: isTrue(reason) ? 'True' : 'False', reason, message } as const;
  const at = { generation: o.object.metadata.generation, now };
  return {
    ...before,
    phase,
    ...(admitted && { admittedAt: before.admittedAt ?? now }),
    ...(membersOf(o).length > 0 && { startedAt: before.startedAt ?? now }),
    ...(isOver && { completedAt: now }),
    defragmented: withOutcome(o, 'Defragmented').length,
    conditions: [...updateConditions(before.conditions, [condition], at)],
  };
}

/** Reasons of Events that differ from those of the condition. */
const EVENTS: Readonly<Partial<Record<string, string>>> = { ClusterNotHealthy: 'DefragDeferred' };
const SILENT: readonly string[] = ['Queued', 'Running'];

export function eventsFor(o: Observed, after: EtcdDefragStatus): readonly EventRecord[] {
  const [changed] = changedConditions(statusBefore(o).conditions, after.conditions);
  if (!changed || SILENT.includes(changed.reason)) return [];
  const { reason, message } = changed;
  const type = reason === 'Complete' ? 'Normal' : 'Warning';
  const own: EventRecord = { type, reason: EVENTS[reason] ?? reason, note: message };
  const isOver = after.completedAt !== undefined;
  const failed = isOver ? withOutcome(o, 'Failed') : [];
  const members = failed.map(
    ({ name, message: why = 'no message' }): EventRecord => ({
      type: 'Warning',
      reason: 'DefragFailed',
      note: `${name}: ${why}`,
    }),
  );
  return [own, ...members, ...(isOver ? disarmEvent(o) : [])];
}

function disarmEvent(o: Observed): readonly EventRecord[] {
  if (!isFull(o) || withOutcome(o, 'Defragmented').length === 0) return [];
  const note =
    'the NOSPACE alarm is still set: a database is larger than 90 % of its quota, or etcd refused to disarm it. See the condition Degraded of the EtcdCluster';
  return [{ type: 'Warning', reason: 'AlarmDisarmFailed', note }];
}
