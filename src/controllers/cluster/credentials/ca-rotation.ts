/**
 * Which CA bundle each member has loaded, which one it is to load, and when the old CA may be removed. Which bundle a member has
 * loaded is in the spec of its Pod. Timeline: access/evaluate/port-trust.ts.
 */

import type { PortTrustView } from '../../../access/evaluate/view.ts';
import { type EtcdPortName, trustName } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import type { MemberView, Observed } from '../observed.ts';

export const ROTATING = 'RotatingCA';

const nameIn = (o: Observed, part: EtcdPortName, digest: string | undefined): string | undefined =>
  digest === undefined ? undefined : trustName(identity(o.cluster).name, part, digest);

/** The Secret with the CA bundle that this member's etcd loaded when it started. */
export function bundleOf(o: Observed, m: MemberView, part: EtcdPortName): string | undefined {
  const mount = m.pod.is === 'present' ? m.pod.tls?.[part] : undefined;
  return mount && (mount.bundle ?? nameIn(o, part, o.cluster.status?.trust?.assumed?.[part]));
}

/** Whether it was started with another CA bundle than the recorded one. */
export const isOutdated = (o: Observed, m: MemberView, { part }: PortTrustView): boolean =>
  m.pod.is === 'present' &&
  m.pod.tls?.[part] !== undefined &&
  bundleOf(o, m, part) !== nameIn(o, part, o.cluster.status?.trust?.[part]);

/**
 * Members are restarted with the recorded bundle when it is the target, or while some do not accept the reissued certificates yet. Once
 * all members serve certificates of the new CA, no member is restarted with a bundle that has the old one.
 */
export const asksForRestarts = (t: PortTrustView): boolean =>
  t.loadedAtStart && t.target !== undefined && t.trusted && (t.recorded === t.target || t.notReissued.length > 0);

/** etcd loads its CA bundle only when it starts. */
export const loadsOtherBundle = (o: Observed, m: MemberView) =>
  o.certificates.trusts.some((t) => asksForRestarts(t) && isOutdated(o, m, t))
    ? { reason: ROTATING, message: 'to load the recorded CA bundle' }
    : undefined;

/** The recorded bundle is the target, or the target is not known. */
export const isSettled = ({ recorded, target }: PortTrustView): boolean => target === undefined || recorded === target;

/** No member is cut off: in a handshake, all of them have served certificates that the narrower bundle verifies. */
export const mayNarrow = (o: Observed, { part, next }: PortTrustView): boolean =>
  next?.step === 'narrow' && o.certificates.proven?.includes(part) === true;
