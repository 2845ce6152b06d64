/** What the operator says about a snapshot. */

import { changedConditions, updateConditions } from '../../api/conditions.ts';
import type { Artifact, EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { FAILURES } from '../../domain/agent-result.ts';
import { NOT_YET_SUPPORTED } from '../../domain/not-yet-supported.ts';
import { iso } from '../../lib/time.ts';
import type { Decision, EventRecord, Step } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';

export type Phase = 'Pending' | 'Started' | 'Complete' | 'Failed';

/** All by which a snapshot can fail. */
export const FAILED_REASONS = [
  ...FAILURES,
  'AuthLatchTimeout',
  'ClusterDeleted',
  'ClusterNotFound',
  'ClusterNotReady',
  'ClusterParked',
  'JobFailed',
  'JobRefused',
  'NameConflict',
  'OperatorImageNotConfigured',
  'ResultMissing',
  'ResultRefused',
  'SecretMissing',
  'SecretUnreadable',
  'SnapshotJobLost',
  'VolumeClaimMissing',
] as const;
export type FailedReason = (typeof FAILED_REASONS)[number];

/** How a rule answers: what is so now, besides what is done. */
export interface Said extends Decision<EtcdSnapshotStatus> {
  /** Absent: what was said stands. */
  readonly becomes?: { readonly phase: Phase; readonly reason: string; readonly artifact?: Artifact };
}

export const pending = (reason: string, why: string, wakeAfter?: number, steps?: readonly Step[]): Said => ({
  message: why,
  becomes: { phase: 'Pending', reason },
  ...(steps && { steps }),
  ...(wakeAfter !== undefined && { requeueAfterMs: wakeAfter }),
});
export const running = (reason: string, why: string, wakeAfter?: number): Said => ({
  message: why,
  becomes: { phase: 'Started', reason },
  ...(wakeAfter !== undefined && { requeueAfterMs: wakeAfter }),
});
export const failed = (reason: FailedReason, why: string): Said => ({
  message: why,
  becomes: { phase: 'Failed', reason },
});

export function statusOf(o: Observed, { message: why, becomes }: Said): EtcdSnapshotStatus {
  const before = o.object.status ?? {};
  if (!becomes) return before;
  const { phase, reason, artifact } = becomes;
  const isOver = phase === 'Complete' || phase === 'Failed';
  const verdict = { type: 'Ready', status: phase === 'Complete' ? 'True' : 'False', reason, message: why } as const;
  const at = { generation: o.object.metadata.generation, now: iso(o.now) };
  const startTime = before.startTime ?? (o.job.is === 'ours' ? o.job.object.metadata.creationTimestamp : undefined);
  return {
    ...before,
    phase,
    ...(startTime !== undefined && { startTime }),
    ...(isOver && { completionTime: iso(o.now) }),
    ...(artifact && { artifact }),
    conditions: [...updateConditions(before.conditions, [verdict], at, [NOT_YET_SUPPORTED])],
  };
}

/** What happens to every snapshot. */
const EXPECTED = ['Starting', 'JobCreated', 'JobRunning'];

export function eventsFor(o: Observed, after: EtcdSnapshotStatus): readonly EventRecord[] {
  return changedConditions(o.object.status?.conditions, after.conditions)
    .filter(({ type, reason }) => type === 'Ready' && !EXPECTED.includes(reason))
    .map(({ status, reason, message }) => ({
      type: status === 'True' ? 'Normal' : 'Warning',
      reason,
      note: message,
    }));
}
