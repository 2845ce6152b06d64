/** What is said about logging in: whether clients must, and whether the operator can. */

import { isPasswordUnsettled, UNSETTLED_MS } from '../../../access/evaluate/view.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { wantsAuth } from '../../../api/tls.ts';
import { isFormed, type Observed } from '../observed.ts';
import { SECRET_UNREADABLE, unreadableSecrets } from './certificates.ts';

export const AUTH_ENABLED = 'AuthEnabled';

export interface AuthProblem {
  readonly reason: string;
  readonly message: string;
}

const secretOf = ({ cluster }: Observed): string => cluster.spec.auth?.rootCredentialsSecretRef?.name ?? '';

/** Whether etcd asks for a log-in, in its own words or by what it refused; `undefined` when it said neither. */
export const isAuthOn = (o: Observed): boolean | undefined => {
  if (o.etcd.is === 'answers') return o.etcd.auth === undefined ? undefined : o.etcd.auth !== 'off';
  return o.etcd.is === 'silent' && o.etcd.login !== undefined ? true : undefined;
};

/** The root password cannot be read. */
function unreadPassword(o: Observed): AuthProblem | undefined {
  const message = o.certificates.unreadable?.password === true ? unreadableSecrets(o) : undefined;
  return message === undefined ? undefined : { reason: SECRET_UNREADABLE, message };
}

/** Why the operator cannot look after a cluster whose etcd wants a log-in, if so. What runs goes on without it. */
export function lockedOut(o: Observed): AuthProblem | undefined {
  const login = o.etcd.is === 'silent' ? o.etcd.login : undefined;
  const demanded = login === 'demanded' || (o.etcd.is === 'answers' && o.etcd.auth === 'demanded');
  // Without any certificate nothing else can be known; and whether the right password is in the Secret is not known either.
  const message = unreadableSecrets(o);
  const blind = o.etcd.is === 'silent' && o.certificates.unreadable?.judged === false;
  if (message !== undefined && (blind || (login !== undefined && o.certificates.unreadable?.password === true)))
    return { reason: SECRET_UNREADABLE, message };
  if (login === 'rejected')
    return {
      reason: 'AuthCredentialsRejected',
      message: `etcd does not accept the password of root: put the one that it knows into Secret ${secretOf(o)}`,
    };
  if (!demanded) return undefined;
  if (!wantsAuth(o.cluster.spec))
    return {
      reason: 'AuthRequiredNotConfigured',
      message:
        'etcd wants a log-in, and spec.auth says nothing of it: turn it off in etcd (etcdctl auth disable, as root), or create the cluster anew with spec.auth and the password of root',
    };
  const { problem } = o.password ?? {};
  return problem && { ...problem, message: `etcd wants a log-in, and there is no password: ${problem.message}` };
}

/** Why nothing can be begun, if so: a cluster that is to ask for a password is not started without one. */
export const passwordMissing = (o: Observed): AuthProblem | undefined =>
  isFormed(o) || o.members.length > 0 ? undefined : o.password?.problem;

/** What of the wish for log-ins is not so yet. */
export function unsecured(o: Observed): (AuthProblem & { readonly waits: boolean }) | undefined {
  const { password } = o;
  const unread = unreadPassword(o);
  if (!wantsAuth(o.cluster.spec) || (!password && !unread)) return undefined;
  if (!(isAuthOn(o) ?? o.cluster.status?.authEnabled)) {
    const open = 'clients are not asked to log in yet';
    const problem = unread ?? password?.problem;
    return problem
      ? { ...problem, message: `${open}: ${problem.message}`, waits: true }
      : { reason: 'EnablingAuth', message: open, waits: false };
  }
  if (!password || unread || password.kept === 'same' || (password.kept !== 'intended' && password.problem))
    return undefined;
  return { reason: 'ChangingPassword', message: `etcd is told the password in Secret ${secretOf(o)}`, waits: false };
}

/** Latched when etcd has asked for a log-in, and let the operator in: nothing else proves the password. */
export const authLatch = (o: Observed): Pick<EtcdClusterStatus, 'authEnabled'> =>
  wantsAuth(o.cluster.spec) && o.etcd.is === 'answers' && o.etcd.auth === 'on' ? { authEnabled: true } : {};

/** Nobody tells when a Secret changes, or when a password is put right in etcd. */
export const authRequeueMs = (o: Observed): number | undefined =>
  !o.certificates.unreadable && (isPasswordUnsettled(o.password) || lockedOut(o)) ? UNSETTLED_MS : undefined;

/** Of a cluster that asks for it. What etcd does not say now stands as it was said. */
export function authConditions(o: Observed): readonly ConditionUpdate[] {
  const on = isAuthOn(o);
  const unread = unreadPassword(o);
  if (!wantsAuth(o.cluster.spec) || (on === undefined && isFormed(o) && !unread)) return [];
  const type = AUTH_ENABLED;
  const status = on === undefined && unread ? 'Unknown' : on === true ? 'True' : 'False';
  const trouble = lockedOut(o) ?? unread ?? unsecured(o) ?? o.password?.problem;
  if (trouble) return [{ type, status, reason: trouble.reason, message: trouble.message }];
  if (on !== true) return [{ type, status, reason: 'EnablingAuth', message: 'clients will be asked to log in' }];
  const message = `clients must log in; root has the password in Secret ${secretOf(o)}`;
  return [{ type, status, reason: 'Enabled', message }];
}
