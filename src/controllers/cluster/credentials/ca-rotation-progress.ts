/**
 * Progress of a CA rotation, from observations: members trust the old and the new CA, then their certificates are reissued, then they
 * trust the new CA only.
 */
import type { PortTrustView } from '../../../access/evaluate/view.ts';
import { iso } from '../../../lib/time.ts';
import type { Observed } from '../observed.ts';
import { restartBlockedBy } from '../rollout/candidate.ts';
import { asksForRestarts, isOutdated } from './ca-rotation.ts';

function countOf(o: Observed, t: PortTrustView): string {
  const running = o.members.filter((m) => m.pod.is === 'present');
  const done = running.filter((m) => !isOutdated(o, m, t)).length;
  return `${done} of ${o.members.length} do`;
}

function waiting(o: Observed): string {
  const blocked = restartBlockedBy(o);
  return blocked ? `; the next member is not restarted yet: ${blocked.message}` : '';
}

/** The Pod of the last restarted member does not run yet: the previous CA bundle is kept until all Pods do. */
const isPodMissing = (o: Observed): boolean =>
  o.certificates.kept.length > 0 && o.members.some((m) => m.pod.is !== 'present' || m.pod.terminating === true);

function stepOf(o: Observed, t: PortTrustView): string | undefined {
  const { part, recorded, target, trusted, notReissued: unissued, reachedAt } = t;
  if (target === undefined || recorded === undefined) return undefined;
  const some = t.loadedAtStart && o.members.some((m) => isOutdated(o, m, t));
  const on = `on the ${part} port`;
  if (!trusted || (unissued.length > 0 && recorded !== target && some))
    return `step 1 of 3 ${on}: members must trust the old and the new CA, ${countOf(o, t)}${waiting(o)}`;
  if (recorded === target)
    return asksForRestarts(t) && (some || isPodMissing(o))
      ? `step 3 of 3 ${on}: members must trust the new CA only, ${countOf(o, t)}${waiting(o)}`
      : undefined;
  const soon =
    reachedAt !== undefined && reachedAt > o.now
      ? `not before ${iso(reachedAt)}, so that the Secrets have been updated in all Pods that mount them`
      : '';
  if (unissued.length > 0)
    return `step 2 of 3 ${on}: certificates are reissued; ${soon || `a certificate of the new CA is missing in Secret ${unissued.join(', ')}`}`;
  if (!o.certificates.proven?.includes(part))
    return `step 2 of 3 ${on}: certificates are reissued; not all members serve theirs yet: the kubelet updates them within a minute or two`;
  return `step 3 of 3 ${on}: the old CA is removed from the CA bundle; ${soon || 'this starts when the other port has reached this step'}`;
}

/** The progress as a sentence; `undefined` when no CA is being rotated. */
export function rotationOf(o: Observed): string | undefined {
  const steps = o.certificates.trusts.flatMap((t) => stepOf(o, t) ?? []);
  return steps.length === 0 ? undefined : `CA rotation in progress: ${steps.join('; ')}`;
}
