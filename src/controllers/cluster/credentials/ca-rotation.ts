/**
 * Progress of a CA rotation, from observations: members trust the old and the new CA, then their certificates are reissued, then they
 * trust the new CA only. Which CA bundle a member has loaded is in the spec of its Pod. Timeline: access/evaluate/port-trust.ts.
 */

import type { PortTrustView } from '../../../access/evaluate/view.ts';
import { type EtcdPortName, trustName } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { iso } from '../../../lib/time.ts';
import { isHealthy, learnersOf, removalBlockedBy, restartBlockedBy, votersOf } from '../disruption.ts';
import {
  desired,
  entryOf,
  isNotBeingDeleted,
  isReadyVoter,
  type MemberView,
  nameOf,
  type Observed,
} from '../observed.ts';
import { isInMemory, leaderLast, losesPvc } from '../rollout/restart.ts';

export const ROTATING = 'RotatingCA';

const nameIn = (o: Observed, part: EtcdPortName, digest: string | undefined): string | undefined =>
  digest === undefined ? undefined : trustName(identity(o.cluster).name, part, digest);

/** The Secret with the CA bundle that this member's etcd loaded when it started. */
export function bundleOf(o: Observed, m: MemberView, part: EtcdPortName): string | undefined {
  const mount = m.pod.is === 'present' ? m.pod.tls?.[part] : undefined;
  return mount && (mount.bundle ?? nameIn(o, part, o.cluster.status?.trust?.assumed?.[part]));
}

/** Whether it was started with another CA bundle than the recorded one. */
const isOutdated = (o: Observed, m: MemberView, { part }: PortTrustView): boolean =>
  m.pod.is === 'present' &&
  m.pod.tls?.[part] !== undefined &&
  bundleOf(o, m, part) !== nameIn(o, part, o.cluster.status?.trust?.[part]);

/**
 * Members are restarted with the recorded bundle when it is the target, or while some do not accept the reissued certificates yet. Once
 * all members serve certificates of the new CA, no member is restarted with a bundle that has the old one.
 */
const asksForRestarts = (t: PortTrustView): boolean =>
  t.loadedAtStart && t.target !== undefined && t.trusted && (t.recorded === t.target || t.notReissued.length > 0);

export const outdated = (o: Observed): readonly MemberView[] =>
  o.members.filter((m) => o.certificates.trusts.some((t) => asksForRestarts(t) && isOutdated(o, m, t)));

const isBack = (o: Observed, m: MemberView): boolean =>
  isNotBeingDeleted(m) && m.pod.is === 'present' && m.pod.terminating !== true && isReadyVoter(m) && isHealthy(o, m);

/** Data in memory is lost with its Pod: such a member is replaced, and the others must keep quorum without it. */
const MIN_VOTERS_IN_MEMORY = 3;

/** The member that is restarted next. */
export const nextToRestart = (o: Observed): MemberView | undefined => leaderLast(o, outdated(o))[0];

/** Why it is not restarted now; `undefined` when it may be. */
export function rotationBlockedBy(o: Observed, m: MemberView): string | undefined {
  const unready = o.members.filter((other) => !isBack(o, other)).map(nameOf);
  if (unready.length > 0) return `${unready.join(', ')} must be ready and healthy first`;
  const entry = entryOf(o, m);
  if (!entry) return 'etcd does not respond';
  if (o.members.length !== desired(o) || learnersOf(o).length > 0) return 'the number of members is being changed';
  if (!isInMemory(m)) return losesPvc(m) ?? restartBlockedBy(o, entry);
  return votersOf(o).length < MIN_VOTERS_IN_MEMORY
    ? `${nameOf(m)} has its data in memory only, which is lost when it restarts: set replicas to ${MIN_VOTERS_IN_MEMORY}, so that other members have it`
    : removalBlockedBy(o, entry);
}

/** The recorded bundle is the target, or the target is not known. */
export const isSettled = ({ recorded, target }: PortTrustView): boolean => target === undefined || recorded === target;

/** No member is cut off: in a handshake, all of them have served certificates that the narrower bundle verifies. */
export const mayNarrow = (o: Observed, { part, next }: PortTrustView): boolean =>
  next?.step === 'narrow' && o.certificates.proven?.includes(part) === true;

function countOf(o: Observed, t: PortTrustView): string {
  const running = o.members.filter((m) => m.pod.is === 'present');
  const done = running.filter((m) => !isOutdated(o, m, t)).length;
  return `${done} of ${o.members.length} do`;
}

function waiting(o: Observed): string {
  const next = nextToRestart(o);
  const message = next && rotationBlockedBy(o, next);
  return message === undefined ? '' : `; the next member is not restarted yet: ${message}`;
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
