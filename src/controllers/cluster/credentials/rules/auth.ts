/** Rules about auth: enabled as early as possible, with the root password of the user. */
import { keptPasswordName } from '../../../../api/names.ts';
import { wantsAuth } from '../../../../api/tls.ts';
import { identity } from '../../../../domain/ownership.ts';
import { CHANGE_RETRY_MS } from '../../../../domain/timing.ts';
import type { Step } from '../../../../runtime/plan.ts';
import type { CredentialsCall, RootPasswordStep } from '../calls.ts';
import { type Contributed, type CredentialsFacts, isUnread } from '../observed.ts';

/** In this order. The intended password is in the operator's copy before etcd gets it, and replaces the previous one when it is proven. */
const sequence = (c: CredentialsFacts, ...names: readonly RootPasswordStep[]): readonly Step<CredentialsCall>[] =>
  names.map((name) => {
    const isAtSecret = name === 'intendPassword' || name === 'provePassword';
    const cluster = identity(c.cluster);
    const target = isAtSecret ? keptPasswordName(cluster.name) : 'root';
    return { do: 'call', call: { is: 'rootPassword', name, target, cluster, ...c.voters }, retryMs: CHANGE_RETRY_MS };
  });

/** Not while the password may have changed since it was read, and not for a paused cluster. */
const isSettable = (c: CredentialsFacts): boolean =>
  !isUnread(c) &&
  c.replicas > 0 &&
  c.password !== undefined &&
  (c.password.kept === 'intended' || c.password.problem === undefined);

/**
 * etcd cannot verify a password while auth is off, and enabling auth with a wrong root password locks every client out. So the operator
 * deletes an existing root and creates it again, with the password of its copy, in the same reconcile.
 */
export const enableAuth = (c: CredentialsFacts): Contributed =>
  c.auth === 'off' && c.allHealthy && isSettable(c)
    ? {
        message: 'auth is being enabled with the given root password',
        sequences: [sequence(c, 'intendPassword', 'makeRoot', 'enableAuth', 'provePassword')],
      }
    : undefined;

/**
 * A started password change is finished first, even if the user gives another: with three candidates, the operator could lose the
 * right one. Also while a member is down: a proven password that is not stored could be lost with the next change of the Secret.
 */
export function changeRootPassword(c: CredentialsFacts): Contributed {
  if (c.auth !== 'on' || c.voters.endpoints.length === 0 || !isSettable(c) || c.password?.kept === 'same')
    return undefined;
  return c.password?.kept === 'nothing'
    ? { message: 'the root password that etcd accepts is stored', sequences: [sequence(c, 'provePassword')] }
    : {
        message: 'the root password is being changed to the given one',
        sequences: [sequence(c, 'intendPassword', 'changePassword', 'provePassword')],
      };
}

/** Once this cluster reports auth as enabled and has authenticated the operator: nothing else proves the password. */
export const recordAuth = (c: CredentialsFacts): Contributed =>
  wantsAuth(c.cluster.spec) &&
  c.auth === 'on' &&
  c.voters.endpoints.length > 0 &&
  c.cluster.status?.authEnabled !== true
    ? { message: 'auth is enabled', latch: { authEnabled: true } }
    : undefined;
