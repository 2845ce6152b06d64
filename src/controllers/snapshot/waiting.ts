/** How long a snapshot waits for its cluster before it has failed. */
import type { Observed } from './observed.ts';
import { type FailedReason, failed, pending, type SnapshotDecision } from './status.ts';

/** After this, the user has waited long enough for a failure to be reported. */
const WAIT_MS = 15 * 60_000;

/** How long the snapshot may still wait. */
export const remainingMs = ({ now, object }: Observed): number =>
  Date.parse(object.metadata.creationTimestamp ?? '') + WAIT_MS - now;

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
