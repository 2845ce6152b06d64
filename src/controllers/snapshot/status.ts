/** The status, conditions and Events of a snapshot. */

import type { Artifact, EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { FAILURES } from '../../domain/agent-result.ts';
import { type ConditionUpdate, changedConditions, updateConditions } from '../../domain/conditions.ts';
import { REFERENCE_NOT_PERMITTED } from '../../domain/tenancy.ts';
import { present } from '../../lib/present.ts';
import { iso } from '../../lib/time.ts';
import type { Decision, EventRecord, Step } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';

export const COPIED = 'Copied';

export type Phase = 'Pending' | 'Started' | 'Complete' | 'Failed';

/** All reasons of a failed snapshot. */
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
  REFERENCE_NOT_PERMITTED,
  'ResultMissing',
  'ResultRefused',
  'SecretMissing',
  'SecretUnreadable',
  'SnapshotJobLost',
  'VolumeClaimMissing',
] as const;
export type FailedReason = (typeof FAILED_REASONS)[number];

/** What a rule returns: the steps, and the phase that the snapshot enters. */
export interface SnapshotDecision extends Decision<EtcdSnapshotStatus> {
  /** What is known about the copy now. */
  readonly copy?: EtcdSnapshotStatus['copy'];
  /** Absent: the status does not change. */
  readonly becomes?: { readonly phase: Phase; readonly reason: string; readonly artifact?: Artifact };
}

export const pending = (
  reason: string,
  message: string,
  requeueAfterMs?: number,
  steps?: readonly Step[],
): SnapshotDecision => ({
  message,
  becomes: { phase: 'Pending', reason },
  ...present({ steps, requeueAfterMs }),
});
export const running = (reason: string, message: string, requeueAfterMs?: number): SnapshotDecision => ({
  message,
  becomes: { phase: 'Started', reason },
  ...present({ requeueAfterMs }),
});
export const failed = (reason: FailedReason, message: string): SnapshotDecision => ({
  message,
  becomes: { phase: 'Failed', reason },
});

export function statusOf(o: Observed, decision: SnapshotDecision): EtcdSnapshotStatus {
  const { message, becomes, latch } = decision;
  const before = o.object.status ?? {};
  if (o.copying) return copyStatus(o, decision);
  if (!becomes) return before;
  const { streamsFrom, ...rest } = before;
  const { phase, reason, artifact } = becomes;
  const isOver = phase === 'Complete' || phase === 'Failed';
  const ready = { type: 'Ready', status: phase === 'Complete' ? 'True' : 'False', reason, message } as const;
  const at = { generation: o.object.metadata.generation, now: iso(o.now) };
  const startTime = before.startTime ?? (o.job.is === 'ours' ? o.job.object.metadata.creationTimestamp : undefined);
  return {
    ...rest,
    ...(!isOver && present({ streamsFrom: latch?.streamsFrom ?? streamsFrom })),
    phase,
    ...present({ startTime, artifact, completionTime: isOver ? iso(o.now) : undefined }),
    conditions: [...updateConditions(before.conditions, [ready], at)],
  };
}

/** The last failure is reported until an attempt succeeds. */
function copyStatus(o: Observed, { message, copy }: SnapshotDecision): EtcdSnapshotStatus {
  const before = o.object.status ?? {};
  const known = copy ?? before.copy;
  const at = { generation: o.object.metadata.generation, now: iso(o.now) };
  const { uri, reason, nextAttemptTime } = known ?? {};
  const next = Date.parse(nextAttemptTime ?? '');
  const again = next > o.now ? `It is tried again at ${nextAttemptTime}` : 'It is being tried again';
  const when = nextAttemptTime === undefined ? 'It is not tried again' : again;
  const condition = (): ConditionUpdate => {
    if (uri !== undefined)
      return { type: COPIED, status: 'True', reason: 'SnapshotCopied', message: `copied to ${uri}` };
    if (reason === undefined) return { type: COPIED, status: 'Unknown', reason: 'Copying', message };
    return { type: COPIED, status: 'False', reason, message: `the copy failed: ${known?.message}. ${when}` };
  };
  const conditions = [...updateConditions(before.conditions, [condition()], at)];
  return { ...before, ...present({ copy: known }), conditions };
}

/** Reasons of every snapshot: no Events. */
const EXPECTED = ['Starting', 'JobCreated', 'JobRunning'];

export function eventsFor(o: Observed, after: EtcdSnapshotStatus): readonly EventRecord[] {
  return changedConditions(o.object.status?.conditions, after.conditions)
    .filter(
      ({ type, status, reason }) =>
        !EXPECTED.includes(reason) && (type === 'Ready' || (type === COPIED && status !== 'Unknown')),
    )
    .map(({ type, status, reason: found, message }) => ({
      type: status === 'True' ? 'Normal' : 'Warning',
      reason: type === COPIED && status !== 'True' ? 'CopyFailed' : found,
      note: message,
    }));
}
