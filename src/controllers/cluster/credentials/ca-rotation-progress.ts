/**
 * Progress of a CA rotation, from observations: members trust the old and the new CA, then their certificates are reissued, then they
 * trust the new CA only.
 */
import type { PortTrustView } from '../../../access/evaluate/view.ts';
import { iso } from '../../../lib/time.ts';
import { asksForRestarts, isOutdated } from './ca-rotation.ts';
import type { CredentialsObserved } from './observed.ts';

/** How many members do, and why the next one does not yet. */
function restarted(c: CredentialsObserved, t: PortTrustView): string {
  const done = c.pods.filter((pod) => pod.is === 'present' && !isOutdated(c, pod, t)).length;
  const blocked = c.restartBlockedBy;
  const waiting = blocked ? `; the next member is not restarted yet: ${blocked.message}` : '';
  return `${done} of ${c.pods.length} do${waiting}`;
}

/** The Pod of the last restarted member does not run yet: the previous CA bundle is kept until all Pods do. */
const isPodMissing = (c: CredentialsObserved): boolean =>
  c.certificates.kept.length > 0 && c.pods.some((pod) => pod.is !== 'present' || pod.terminating === true);

function stepOf(c: CredentialsObserved, t: PortTrustView): string | undefined {
  const { part, recorded, target, trusted, notReissued: unissued, reachedAt } = t;
  if (target === undefined || recorded === undefined) return undefined;
  const some = t.loadedAtStart && c.pods.some((pod) => isOutdated(c, pod, t));
  const on = `on the ${part} port`;
  if (!trusted || (unissued.length > 0 && recorded !== target && some))
    return `step 1 of 3 ${on}: members must trust the old and the new CA, ${restarted(c, t)}`;
  if (recorded === target)
    return asksForRestarts(t) && (some || isPodMissing(c))
      ? `step 3 of 3 ${on}: members must trust the new CA only, ${restarted(c, t)}`
      : undefined;
  const soon =
    reachedAt !== undefined && reachedAt > c.now
      ? `not before ${iso(reachedAt)}, so that the Secrets have been updated in all Pods that mount them`
      : '';
  if (unissued.length > 0)
    return `step 2 of 3 ${on}: certificates are reissued; ${soon || `a certificate of the new CA is missing in Secret ${unissued.join(', ')}`}`;
  if (!c.certificates.proven?.includes(part))
    return `step 2 of 3 ${on}: certificates are reissued; not all members serve theirs yet: the kubelet updates them within a minute or two`;
  return `step 3 of 3 ${on}: the old CA is removed from the CA bundle; ${soon || 'this starts when the other port has reached this step'}`;
}

/** The progress as a sentence; `undefined` when no CA is being rotated. */
export function rotationOf(c: CredentialsObserved): string | undefined {
  const steps = c.certificates.trusts.flatMap((t) => stepOf(c, t) ?? []);
  return steps.length === 0 ? undefined : `CA rotation in progress: ${steps.join('; ')}`;
}
