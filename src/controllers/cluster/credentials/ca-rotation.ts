/** Which CA bundle members are to load, and when the old CA may be removed. Timeline: access/evaluate/port-trust.ts. */

import type { PortTrustView } from '../../../access/evaluate/view.ts';
import { type CredentialsFacts, wantedBundles } from './observed.ts';
import { loadsOther, type MountingPod } from './state.ts';

/** Whether it was started with another CA bundle than the recorded one. */
export const isOutdated = (c: CredentialsFacts, pod: MountingPod, { part }: PortTrustView): boolean =>
  wantedBundles(c, part).some((wanted) => loadsOther(pod, wanted));

/**
 * Members are restarted with the recorded bundle when it is the target, or while some do not accept the reissued certificates yet. Once
 * all members serve certificates of the new CA, no member is restarted with a bundle that has the old one.
 */
export const asksForRestarts = (t: PortTrustView): boolean =>
  t.loadedAtStart && t.target !== undefined && t.trusted && (t.recorded === t.target || t.notReissued.length > 0);

/** The recorded bundle is the target, or the target is not known. */
export const isSettled = ({ recorded, target }: PortTrustView): boolean => target === undefined || recorded === target;

/** No member is cut off: in a handshake, all of them have served certificates that the narrower bundle verifies. */
export const mayNarrow = (c: CredentialsFacts, { part, next }: PortTrustView): boolean =>
  next?.step === 'narrow' && c.certificates.proven?.includes(part) === true;
