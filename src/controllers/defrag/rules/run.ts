/** Rules that follow what the cluster controller does for an EtcdDefrag. */
import { isDone, mebibytes } from '../../../domain/defragmentation.ts';
import { DEFRAG_RECHECK_MS, DISARMED_WITHIN_MS, UNHEALTHY_RESYNC_MS } from '../../../domain/timing.ts';
import { isFull, membersOf, type Observed, waitingFor, withOutcome } from '../observed.ts';
import type { DefragDecision } from '../status.ts';

const requeueAfterMs = DEFRAG_RECHECK_MS;

export function notStarted(o: Observed): DefragDecision | undefined {
  if (membersOf(o).length > 0) return undefined;
  const why = waitingFor(o);
  return why === undefined
    ? { message: 'it starts now', becomes: { phase: 'Pending', reason: 'Queued' }, requeueAfterMs }
    : { message: why, becomes: { phase: 'Pending', reason: 'ClusterNotHealthy' }, requeueAfterMs };
}

const summary = (o: Observed): string => {
  const count = (outcome: string): number => withOutcome(o, outcome).length;
  const freed = membersOf(o).reduce((sum, { reclaimedBytes = 0 }) => sum + reclaimedBytes, 0);
  const parts = [
    `${count('Defragmented')} of ${membersOf(o).length} members defragmented, ${mebibytes(freed)} freed`,
    ...(count('Skipped') > 0 ? [`${count('Skipped')} skipped`] : []),
    ...(count('Failed') > 0 ? [`${count('Failed')} failed`] : []),
  ];
  return parts.join(', ');
};

export function runs(o: Observed): DefragDecision | undefined {
  if (membersOf(o).every(isDone)) return undefined;
  const why = waitingFor(o);
  return why === undefined
    ? { message: summary(o), becomes: { phase: 'Running', reason: 'Running' }, requeueAfterMs }
    : { message: `${summary(o)}; ${why}`, becomes: { phase: 'Running', reason: 'ClusterNotHealthy' }, requeueAfterMs };
}

/** The cluster controller disarms NOSPACE now. A user who reads that it is complete expects writes to be accepted. */
export function disarming(o: Observed): DefragDecision | undefined {
  const ended = Math.max(...membersOf(o).map(({ finishedAt = '' }) => Date.parse(finishedAt)));
  const isExpected = isFull(o) && withOutcome(o, 'Defragmented').length > 0;
  if (!isExpected || o.now - ended > DISARMED_WITHIN_MS) return undefined;
  const message = `${summary(o)}; waiting until the NOSPACE alarm is disarmed`;
  return { message, becomes: { phase: 'Running', reason: 'Running' }, requeueAfterMs: UNHEALTHY_RESYNC_MS };
}

export const finished = (o: Observed): DefragDecision => {
  const failed = withOutcome(o, 'Failed').length > 0;
  return {
    message: summary(o),
    becomes: failed ? { phase: 'Failed', reason: 'MemberFailed' } : { phase: 'Complete', reason: 'Complete' },
  };
};
