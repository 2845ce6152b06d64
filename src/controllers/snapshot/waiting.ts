/** How long a snapshot waits for its cluster before it has failed. */
import { SNAPSHOT_WAIT_MS } from '../../domain/timing.ts';
import type { Observed } from './observed.ts';
import { type FailedReason, failed, pending, type SnapshotDecision } from './status.ts';

/** How long the snapshot may still wait. */
export const remainingMs = ({ now, object }: Observed): number =>
  Date.parse(object.metadata.creationTimestamp ?? '') + SNAPSHOT_WAIT_MS - now;

/** Pending until the wait is over, requeued at least every `everyMs`; then Failed. */
export function waitFor(
  o: Observed,
  reasons: { readonly meanwhile: string; readonly atLast: FailedReason },
  message: string,
  everyMs = Number.POSITIVE_INFINITY,
): SnapshotDecision {
  const left = remainingMs(o);
  return left > 0
    ? pending(reasons.meanwhile, message, Math.min(left, everyMs))
    : failed(reasons.atLast, `${message}. Waited for 15 minutes: solve this, then create another EtcdSnapshot`);
}
