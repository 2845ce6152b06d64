/**
 * The credentials chain of one EtcdCluster: certificates, CA rotation, auth. Its rows are independent of each other and of every
 * other stage: certificates are renewed while anything else is refused.
 */

import type { ConditionUpdate } from '../../../domain/conditions.ts';
import { UNREADABLE_RECHECK_MS } from '../../../domain/timing.ts';
import { type Answer, allOf } from '../../../runtime/compose.ts';
import type { NamedRule } from '../../../runtime/plan.ts';
import { authRequeueMs, lockedOut, unsecured } from './auth.ts';
import { asksForRestarts } from './ca-rotation.ts';
import { rotationOf } from './ca-rotation-progress.ts';
import {
  bootstrapBlockedBy,
  certificatesRequeueMs,
  mountBlockedBy,
  newNamesBlockedBy,
  recreateBlockedBy,
  unreadCertificates,
  unreadSecrets,
} from './certificates.ts';
import { type CredentialsFacts, type CredentialsObserved, type CredentialsUpkeep, wantedBundles } from './observed.ts';
import { changeRootPassword, enableAuth, recordAuth } from './rules/auth.ts';
import { discardCABundles, recordCABundle } from './rules/ca-rotation.ts';
import { requestCertificates, writeSecrets } from './rules/certificates.ts';
import type { CredentialsState, Waiting } from './state.ts';
import { authConditions, certificateConditions } from './status.ts';

/** Every row contributes. */
export const CREDENTIALS: readonly NamedRule<CredentialsObserved, CredentialsUpkeep>[] = [
  { name: 'requestCertificates', rule: requestCertificates },
  { name: 'writeSecrets', rule: writeSecrets },
  { name: 'recordCABundle', rule: recordCABundle },
  { name: 'discardCABundles', rule: discardCABundles },
  { name: 'enableAuth', rule: enableAuth },
  { name: 'changeRootPassword', rule: changeRootPassword },
  { name: 'recordAuth', rule: recordAuth },
];

export interface CredentialsDecision {
  readonly state: CredentialsState;
  readonly upkeep: readonly Answer<CredentialsUpkeep>[];
  readonly conditions: readonly ConditionUpdate[];
  readonly requeueAfterMs: readonly number[];
}

/** Before other members join: fewer clients are served without auth, and a seed has no other member to wait for. */
function authFirst(c: CredentialsFacts): Waiting | undefined {
  const enabling = c.single ? enableAuth(c) : undefined;
  return enabling && { reason: 'EnablingAuth', message: enabling.message, waits: false };
}

/** What membership is decided by. */
export const stateOf = (c: CredentialsFacts): CredentialsState => ({
  bootstrap: { blockedBy: bootstrapBlockedBy(c) },
  join: { blockedBy: authFirst(c) ?? mountBlockedBy(c) ?? newNamesBlockedBy(c) },
  replace: { blockedBy: newNamesBlockedBy(c)?.message },
  recreate: { blockedBy: recreateBlockedBy(c) },
  restart: c.certificates.trusts.flatMap((t) => (asksForRestarts(t) ? wantedBundles(c, t.part) : [])),
  expired: c.certificates.trusts.flatMap(({ part, expired = [] }) =>
    expired.map((bundleSecret) => ({ port: part, bundleSecret })),
  ),
  locked: lockedOut(c),
  unsecured: c.replicas === 0 ? undefined : unsecured(c),
  unread: unreadSecrets(c),
  unreadCertificates: unreadCertificates(c),
});

/** After membership: whether that is at rest, and what a restart waits for, are facts of the chain. */
export function decideCredentials(c: CredentialsObserved, state: CredentialsState): CredentialsDecision {
  const rotating = rotationOf(c);
  const unreadMs = state.unreadCertificates.length > 0 ? UNREADABLE_RECHECK_MS : undefined;
  return {
    state: { ...state, rotating },
    upkeep: allOf(CREDENTIALS, c),
    conditions: [...certificateConditions(c, rotating), ...authConditions(c)],
    requeueAfterMs: [certificatesRequeueMs(c), authRequeueMs(c), unreadMs].filter((ms) => ms !== undefined),
  };
}
