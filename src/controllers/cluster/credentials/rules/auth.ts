/** Rules about auth: enabled as early as possible, with the root password of the user. */
import { keptPasswordName } from '../../../../api/names.ts';
import { identity } from '../../../../domain/ownership.ts';
import { rootPasswordStep } from '../../etcd-calls.ts';
import { type Contributed, type Decided, desired, entriesOf, memberOf, type Observed } from '../../observed.ts';
import { healthyVoters, isHealthy } from '../../quorum.ts';
import { unreadableSecrets } from '../certificates.ts';

/** Before other members join: fewer clients are served without auth, and a seed has no other member to wait for. */
export const waitForAuth = (o: Observed): Decided => {
  const enabling = entriesOf(o)?.length === 1 ? enableSteps(o) : undefined;
  return enabling && { message: enabling.message };
};

export const enableAuth = (o: Observed): Contributed => (desired(o) === 0 ? undefined : enableSteps(o));

/** A started password change is finished first, even if the user gives another: with three candidates, the operator could lose the right one. */
export const changeRootPassword = (o: Observed): Contributed => (desired(o) === 0 ? undefined : changeSteps(o));

/**
 * All members that have started must be healthy: one that lags would serve clients without auth until it catches up. A member
 * that has never started has no name in etcd's list, and serves no client.
 */
const allRespond = (o: Observed): boolean => {
  const started = (entriesOf(o) ?? []).filter(({ name }) => name !== '');
  return (
    started.length > 0 &&
    started.every((entry) => {
      const m = memberOf(o, entry);
      return m !== undefined && isHealthy(o, m);
    })
  );
};

/**
 * etcd cannot verify a password while auth is off, and enabling auth with a wrong root password locks every client out. So the operator
 * deletes an existing root and creates it again, with the password of its copy, in the same reconcile.
 */
function enableSteps(o: Observed): Contributed {
  if (unreadableSecrets(o) !== undefined) return undefined; // the password may have changed since it was read
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'off' || !allRespond(o)) return undefined;
  if (!o.password || (o.password.problem && o.password.kept !== 'intended')) return undefined;
  return {
    message: 'auth is being enabled with the given root password',
    sequences: [
      [
        rootPasswordStep(o, 'intendPassword', keptSecret(o)),
        rootPasswordStep(o, 'makeRoot', 'root'),
        rootPasswordStep(o, 'enableAuth', 'root'),
        rootPasswordStep(o, 'provePassword', keptSecret(o)),
      ],
    ],
  };
}

function changeSteps(o: Observed): Contributed {
  // Also while a member is down: a proven password that is not stored could be lost with the next change of the Secret.
  if (unreadableSecrets(o) !== undefined || healthyVoters(o).length === 0) return undefined;
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'on' || !o.password) return undefined;
  const { kept, problem } = o.password;
  if (kept === 'same' || (problem && kept !== 'intended')) return undefined;
  const proof = rootPasswordStep(o, 'provePassword', keptSecret(o));
  if (kept === 'nothing') return { message: 'the root password that etcd accepts is stored', sequences: [[proof]] };
  return {
    message: 'the root password is being changed to the given one',
    sequences: [
      [rootPasswordStep(o, 'intendPassword', keptSecret(o)), rootPasswordStep(o, 'changePassword', 'root'), proof],
    ],
  };
}

const keptSecret = (o: Observed): string => keptPasswordName(identity(o.cluster).name);
