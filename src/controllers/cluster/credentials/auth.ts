/** Status of etcd auth: whether clients must authenticate, and whether the operator can. */

import { isPasswordUnsettled } from '../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { wantsAuth } from '../../../api/tls.ts';
import type { ConditionUpdate } from '../../../domain/conditions.ts';
import { SECRETS_UNSETTLED_MS } from '../../../domain/timing.ts';
import { etcdError, isFormed, type Observed } from '../observed.ts';
import { SECRET_UNREADABLE, unreadableSecrets } from './certificates.ts';

export const AUTH_ENABLED = 'AuthEnabled';

export interface AuthProblem {
  readonly reason: string;
  readonly message: string;
}

const secretOf = ({ cluster }: Observed): string => cluster.spec.auth?.rootCredentialsSecretRef?.name ?? '';

const isUnauthenticated = ({ etcd }: Observed): boolean => etcd.is === 'authRequired' || etcd.is === 'authRejected';

/** Whether auth is enabled, as etcd reports it or by what it refused; `undefined` when neither is known. */
export const isAuthOn = (o: Observed): boolean | undefined => {
  if (o.etcd.is === 'answers') return o.etcd.auth === undefined ? undefined : o.etcd.auth !== 'off';
  return isUnauthenticated(o) ? true : undefined;
};

/** The root password cannot be read. */
function unreadPassword(o: Observed): AuthProblem | undefined {
  const message = o.certificates.unreadable?.password === true ? unreadableSecrets(o) : undefined;
  return message === undefined ? undefined : { reason: SECRET_UNREADABLE, message };
}

/** Why the operator cannot authenticate at a cluster with auth enabled, if so. Members keep serving clients meanwhile. */
export function lockedOut(o: Observed): AuthProblem | undefined {
  const required = o.etcd.is === 'authRequired' || (o.etcd.is === 'answers' && o.etcd.auth === 'required');
  // Without the certificates the operator cannot connect, and without the password Secret it cannot tell whether its password is wrong.
  const message = unreadableSecrets(o);
  const blind = etcdError(o) !== undefined && o.certificates.unreadable?.judged === false;
  if (message !== undefined && (blind || (isUnauthenticated(o) && o.certificates.unreadable?.password === true)))
    return { reason: SECRET_UNREADABLE, message };
  if (o.etcd.is === 'authRejected')
    return {
      reason: 'AuthCredentialsRejected',
      message: `etcd rejects the root password: put the password that etcd has into Secret ${secretOf(o)}`,
    };
  if (!required) return undefined;
  if (!wantsAuth(o.cluster.spec))
    return {
      reason: 'AuthRequiredNotConfigured',
      message:
        'auth is enabled in etcd but not in spec.auth: disable it in etcd (etcdctl auth disable, as root), or create the cluster again with spec.auth and the root password',
    };
  const { problem } = o.password ?? {};
  return problem && { ...problem, message: `auth is enabled, and there is no root password: ${problem.message}` };
}

/** Why the cluster cannot be bootstrapped, if so: with spec.auth it is not started without a root password. */
export const passwordMissing = (o: Observed): AuthProblem | undefined =>
  isFormed(o) || o.members.length > 0 ? undefined : o.password?.problem;

/** What is left to do until auth is as the spec asks. */
export function unsecured(o: Observed): (AuthProblem & { readonly waits: boolean }) | undefined {
  const { password } = o;
  const unread = unreadPassword(o);
  if (!wantsAuth(o.cluster.spec) || (!password && !unread)) return undefined;
  if (!(isAuthOn(o) ?? o.cluster.status?.authEnabled)) {
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
    message: `the root password is being changed to the one in Secret ${secretOf(o)}`,
    waits: false,
  };
}

/** Latched once etcd reports auth as enabled and has authenticated the operator: nothing else proves the password. */
export const authLatch = (o: Observed): Pick<EtcdClusterStatus, 'authEnabled'> =>
  wantsAuth(o.cluster.spec) && o.etcd.is === 'answers' && o.etcd.auth === 'on' ? { authEnabled: true } : {};

/** The operator gets no event when a Secret changes, or when a user corrects a password in etcd. */
export const authRequeueMs = (o: Observed): number | undefined =>
  !o.certificates.unreadable && (isPasswordUnsettled(o.password) || lockedOut(o)) ? SECRETS_UNSETTLED_MS : undefined;

/** Only for a cluster with spec.auth. While etcd does not respond, the condition is left as it is. */
export function authConditions(o: Observed): readonly ConditionUpdate[] {
  const on = isAuthOn(o);
  const unread = unreadPassword(o);
  if (!wantsAuth(o.cluster.spec) || (on === undefined && isFormed(o) && !unread)) return [];
  const type = AUTH_ENABLED;
  const status = on === undefined && unread ? 'Unknown' : on === true ? 'True' : 'False';
  const trouble = lockedOut(o) ?? unread ?? unsecured(o) ?? o.password?.problem;
  if (trouble) return [{ type, status, reason: trouble.reason, message: trouble.message }];
  if (on !== true) return [{ type, status, reason: 'EnablingAuth', message: 'auth will be enabled' }];
  const message = `auth is enabled; the root password is in Secret ${secretOf(o)}`;
  return [{ type, status, reason: 'Enabled', message }];
}
