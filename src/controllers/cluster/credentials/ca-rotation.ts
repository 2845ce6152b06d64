/**
 * How an authority is exchanged under members that run, as facts say it: members come to trust the old and the new one, then
 * they get certificates of the new one, then they trust the new one only. Whom a member trusts is in the spec of its Pod.
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

/** The Secret that this member's etcd has read when it started. */
export function bundleOf(o: Observed, m: MemberView, part: EtcdPortName): string | undefined {
  const mount = m.pod.is === 'present' ? m.pod.tls?.[part] : undefined;
  return mount && (mount.bundle ?? nameIn(o, part, o.cluster.status?.trust?.assumed?.[part]));
}

/** Whether it was started with something else than what is recorded. */
const isOutdated = (o: Observed, m: MemberView, { part }: PortTrustView): boolean =>
  m.pod.is === 'present' &&
  m.pod.tls?.[part] !== undefined &&
  bundleOf(o, m, part) !== nameIn(o, part, o.cluster.status?.trust?.[part]);

/**
 * Members start again with what is recorded when that is where all of this is to lead, or when some do not take yet what they
 * are to be given. As soon as everybody shows certificates of the new authority, nobody is started with the old one once more.
 */
const asksForRestarts = (t: PortTrustView): boolean =>
  t.loadedAtStart && t.target !== undefined && t.trusted && (t.recorded === t.target || t.notReissued.length > 0);

export const outdated = (o: Observed): readonly MemberView[] =>
  o.members.filter((m) => o.certificates.trusts.some((t) => asksForRestarts(t) && isOutdated(o, m, t)));

const isBack = (o: Observed, m: MemberView): boolean =>
  isNotBeingDeleted(m) && m.pod.is === 'present' && m.pod.terminating !== true && isReadyVoter(m) && isHealthy(o, m);

/** Data in memory goes with its Pod: such a member is replaced, and the others must carry the cluster without it. */
const MIN_VOTERS_IN_MEMORY = 3;

/** Who is started again next. */
export const nextToRestart = (o: Observed): MemberView | undefined => leaderLast(o, outdated(o))[0];

/** Why it is not started again now; `undefined` when it may be. */
export function rotationBlockedBy(o: Observed, m: MemberView): string | undefined {
  const away = o.members.filter((other) => !isBack(o, other)).map(nameOf);
  if (away.length > 0) return `${away.join(', ')} must be ready and healthy first`;
  const entry = entryOf(o, m);
  if (!entry) return 'etcd does not answer';
  if (o.members.length !== desired(o) || learnersOf(o).length > 0) return 'the number of members is being changed';
  if (!isInMemory(m)) return losesPvc(m) ?? restartBlockedBy(o, entry);
  return votersOf(o).length < MIN_VOTERS_IN_MEMORY
    ? `${nameOf(m)} has its data in memory only, which is lost when it starts again: set replicas to ${MIN_VOTERS_IN_MEMORY}, so that others have it`
    : removalBlockedBy(o, entry);
}

/** Nothing is to become of it, or nobody can tell what. */
export const isSettled = ({ recorded, target }: PortTrustView): boolean => target === undefined || recorded === target;

/** Nobody is cut off: what all members have shown in a handshake is what the narrower trust vouches for. */
export const mayNarrow = (o: Observed, { part, next }: PortTrustView): boolean =>
  next?.step === 'narrow' && o.certificates.proven?.includes(part) === true;

function countOf(o: Observed, t: PortTrustView): string {
  const running = o.members.filter((m) => m.pod.is === 'present');
  const done = running.filter((m) => !isOutdated(o, m, t)).length;
  return `${done} of ${o.members.length} do`;
}

function waiting(o: Observed): string {
  const next = nextToRestart(o);
  const why = next && rotationBlockedBy(o, next);
  return why === undefined ? '' : `; the next is started again later: ${why}`;
}

/** The Pod of the last one is gone and not made again: what was trusted before is kept until all are there. */
const isLastAway = (o: Observed): boolean =>
  o.certificates.kept.length > 0 && o.members.some((m) => m.pod.is !== 'present' || m.pod.terminating === true);

function stepOf(o: Observed, t: PortTrustView): string | undefined {
  const { part, recorded, target, trusted, notReissued: unexchanged, reachedAt } = t;
  if (target === undefined || recorded === undefined) return undefined;
  const some = t.loadedAtStart && o.members.some((m) => isOutdated(o, m, t));
  const on = `on the ${part} port`;
  if (!trusted || (unexchanged.length > 0 && recorded !== target && some))
    return `step 1 of 3 ${on}: members come to trust the old and the new authority, ${countOf(o, t)}${waiting(o)}`;
  if (recorded === target)
    return asksForRestarts(t) && (some || isLastAway(o))
      ? `step 3 of 3 ${on}: members come to trust the new authority only, ${countOf(o, t)}${waiting(o)}`
      : undefined;
  const soon =
    reachedAt !== undefined && reachedAt > o.now
      ? `not before ${iso(reachedAt)}, so that it has reached all who mount it`
      : '';
  if (unexchanged.length > 0)
    return `step 2 of 3 ${on}: certificates are exchanged; ${soon || `missing is one of the new authority in Secret ${unexchanged.join(', ')}`}`;
  if (!o.certificates.proven?.includes(part))
    return `step 2 of 3 ${on}: certificates are exchanged; not all members show theirs yet, which Kubernetes brings to them within a minute or two`;
  return `step 3 of 3 ${on}: members come to trust the new authority only; ${soon || 'this begins when the other port is as far'}`;
}

/** How far it is, as a sentence; `undefined` when nothing is exchanged. */
export function rotationOf(o: Observed): string | undefined {
  const steps = o.certificates.trusts.flatMap((t) => stepOf(o, t) ?? []);
  return steps.length === 0 ? undefined : `the authority is exchanged: ${steps.join('; ')}`;
}
