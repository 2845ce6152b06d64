/** How long a snapshot waits for its cluster before it has failed. */
import type { Observed } from './observed.ts';
import { type FailedReason, failed, pending, type Said } from './status.ts';

/** After that, whoever asked for the snapshot has long wanted to know. */
const WAIT_MS = 15 * 60_000;

/** How long it may still be waited. */
export const remainingMs = ({ now, object }: Observed): number =>
  Date.parse(object.metadata.creationTimestamp ?? '') + WAIT_MS - now;

/** Waits, looking again after this time or when it is over; and then it has failed. */
export function waitFor(
  o: Observed,
  reasons: { readonly meanwhile: string; readonly atLast: FailedReason },
  why: string,
  everyMs = Number.POSITIVE_INFINITY,
): Said {
  const left = remainingMs(o);
  return left > 0
    ? pending(reasons.meanwhile, why, Math.min(left, everyMs))
    : failed(reasons.atLast, `${why}. Waited for 15 minutes: create another EtcdSnapshot when that is so`);
}
