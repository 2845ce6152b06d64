/** State of etcd auth: whether clients must authenticate, and whether the operator can. */

import { isPasswordUnsettled } from '../../../access/evaluate/view.ts';
import { wantsAuth } from '../../../api/tls.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { SECRETS_UNSETTLED_MS } from '../../../domain/timing.ts';
import { unreadSecrets } from './certificates.ts';
import { type CredentialsFacts, isUnread } from './observed.ts';
import type { Waiting } from './state.ts';

export const passwordSecret = ({ cluster }: CredentialsFacts): string =>
  cluster.spec.auth?.rootCredentialsSecretRef?.name ?? '';

const isUnauthenticated = ({ etcd }: CredentialsFacts): boolean => etcd === 'authRequired' || etcd === 'authRejected';

/** Whether auth is enabled, as etcd reports it or by what it refused; `undefined` when neither is known. */
export const isAuthOn = (c: CredentialsFacts): boolean | undefined => {
  if (isUnauthenticated(c)) return true;
  return c.auth === undefined ? undefined : c.auth !== 'off';
};

/** The root password cannot be read. */
export const unreadPassword = (c: CredentialsFacts): Blocked | undefined =>
  c.certificates.unreadable?.password === true ? unreadSecrets(c) : undefined;

/** Why the operator cannot authenticate at a cluster with auth enabled, if so. Members keep serving clients meanwhile. */
export function lockedOut(c: CredentialsFacts): Blocked | undefined {
  // Without the certificates the operator cannot connect, and without the password Secret it cannot tell whether its password is wrong.
  const isBlind = c.etcd !== 'answers' && c.etcd !== 'notAsked' && c.certificates.unreadable?.judged === false;
  if (isBlind || (isUnauthenticated(c) && unreadPassword(c))) return unreadSecrets(c);
  if (c.etcd === 'authRejected')
    return {
      reason: 'AuthCredentialsRejected',
      message: `etcd rejects the root password: put the password that etcd has into Secret ${passwordSecret(c)}`,
    };
  if (c.etcd !== 'authRequired' && c.auth !== 'required') return undefined;
  if (!wantsAuth(c.cluster.spec))
    return {
      reason: 'AuthRequiredNotConfigured',
      message:
        'auth is enabled in etcd but not in spec.auth: disable it in etcd (etcdctl auth disable, as root), or create the cluster again with spec.auth and the root password',
    };
  const { problem } = c.password ?? {};
  return problem && { ...problem, message: `auth is enabled, and there is no root password: ${problem.message}` };
}

/** What is left to do until auth is as the spec asks. */
export function unsecured(c: CredentialsFacts): Waiting | undefined {
  const { password } = c;
  const unread = unreadPassword(c);
  if (!wantsAuth(c.cluster.spec) || (!password && !unread)) return undefined;
  if (!(isAuthOn(c) ?? c.cluster.status?.authEnabled)) {
    const open = 'auth is not enabled yet';
    const problem = unread ?? password?.problem;
    return problem
      ? { ...problem, message: `${open}: ${problem.message}`, waits: true }
      : { reason: 'EnablingAuth', message: open, waits: false };
  }
  if (!password || unread || password.kept === 'same' || (password.kept !== 'intended' && password.problem))
    return undefined;
  return {
    reason: 'ChangingPassword',
    message: `the root password is being changed to the one in Secret ${passwordSecret(c)}`,
    waits: false,
  };
}

/** The operator gets no event when a Secret changes, or when a user corrects a password in etcd. */
export const authRequeueMs = (c: CredentialsFacts): number | undefined =>
  !isUnread(c) && (isPasswordUnsettled(c.password) || lockedOut(c)) ? SECRETS_UNSETTLED_MS : undefined;
