/** Rules about auth: enabled as early as possible, with the root password of the user. */
import { keptPasswordName } from '../../../../api/names.ts';
import { identity } from '../../../../domain/ownership.ts';
import { rootPasswordStep } from '../../etcd-calls.ts';
import { type Decided, entriesOf, memberOf, type Observed } from '../../observed.ts';
import { isHealthy } from '../../quorum.ts';
import { passwordMissing } from '../auth.ts';
import { unreadableSecrets } from '../certificates.ts';

/** A cluster with spec.auth that starts without a password would serve every client until there is one. */
export function waitForPassword(o: Observed): Decided {
  const problem = passwordMissing(o);
  return problem && { message: problem.message };
}

/** Before other members join: fewer clients are served without auth, and a seed has no other member to wait for. */
export const enableAuthOnSeed = (o: Observed): Decided => (entriesOf(o)?.length === 1 ? enableSteps(o) : undefined);

/** After all urgent rules: a password change can wait without harm. */
export const enableAuth = (o: Observed): Decided => enableSteps(o) ?? keepPassword(o);

/** All members must be healthy: one that lags would serve clients without auth until it catches up. */
const allRespond = (o: Observed): boolean =>
  (entriesOf(o) ?? []).every((entry) => {
    const m = memberOf(o, entry);
    return m !== undefined && isHealthy(o, m);
  });

/**
 * etcd cannot verify a password while auth is off, and enabling auth with a wrong root password locks every client out. So the operator
 * deletes an existing root and creates it again, with the password of its copy, in the same reconcile.
 */
function enableSteps(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined; // the password may have changed since it was read
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'off' || !allRespond(o)) return undefined;
  if (!o.password || (o.password.problem && o.password.kept !== 'intended')) return undefined;
  return {
    message: 'auth is being enabled with the given root password',
    steps: [
      rootPasswordStep(o, 'intendPassword', keptSecret(o)),
      rootPasswordStep(o, 'makeRoot', 'root'),
      rootPasswordStep(o, 'enableAuth', 'root'),
      rootPasswordStep(o, 'provePassword', keptSecret(o)),
    ],
  };
}

/** A started password change is finished first, even if the user gives another: with three candidates, the operator could lose the right one. */
function keepPassword(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'on' || !o.password) return undefined;
  const { kept, problem } = o.password;
  if (kept === 'same' || (problem && kept !== 'intended')) return undefined;
  const proof = rootPasswordStep(o, 'provePassword', keptSecret(o));
  if (kept === 'nothing') return { message: 'the root password that etcd accepts is stored', steps: [proof] };
  return {
    message: 'the root password is being changed to the given one',
    steps: [rootPasswordStep(o, 'intendPassword', keptSecret(o)), rootPasswordStep(o, 'changePassword', 'root'), proof],
  };
}

const keptSecret = (o: Observed): string => keptPasswordName(identity(o.cluster).name);
