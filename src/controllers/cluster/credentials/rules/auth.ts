/** Rules about logging in: asked for as soon as it can be, and the password of root as the user says. */
import { keptPasswordName } from '../../../../api/names.ts';
import { identity } from '../../../../domain/ownership.ts';
import { isHealthy } from '../../disruption.ts';
import { rootPasswordStep } from '../../etcd-calls.ts';
import { type Decided, entriesOf, memberOf, type Observed } from '../../observed.ts';
import { passwordMissing } from '../auth.ts';
import { unreadableSecrets } from '../certificates.ts';

/** A cluster that is to ask for a password would serve everybody until there is one. */
export function waitForPassword(o: Observed): Decided {
  const problem = passwordMissing(o);
  return problem && { message: problem.message };
}

/** Before others join: the fewer clients were served without a log-in, the better, and a seed has nobody to wait for. */
export const enableAuthOnSeed = (o: Observed): Decided => (entriesOf(o)?.length === 1 ? enableSteps(o) : undefined);

/** After all that is urgent: nobody is in danger while a password is not changed yet. */
export const enableAuth = (o: Observed): Decided => enableSteps(o) ?? keepPassword(o);

/** Everybody has to hear of it: one that is behind would go on letting everybody in for a while. */
const allRespond = (o: Observed): boolean =>
  (entriesOf(o) ?? []).every((entry) => {
    const m = memberOf(o, entry);
    return m !== undefined && isHealthy(o, m);
  });

/**
 * etcd lets nobody try a password before log-ins are on, and then it is too late to find out that it was never set: root is
 * made anew with the password that is kept, in the same pass, and whoever it was before is not asked.
 */
function enableSteps(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined; // the password of an earlier read may be another by now
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'off' || !allRespond(o)) return undefined;
  if (!o.password || (o.password.problem && o.password.kept !== 'intended')) return undefined;
  return {
    message: 'log-ins are turned on: root gets the password that was given',
    steps: [
      rootPasswordStep(o, 'intendPassword', keptSecret(o)),
      rootPasswordStep(o, 'makeRoot', 'root'),
      rootPasswordStep(o, 'enableAuth', 'root'),
      rootPasswordStep(o, 'provePassword', keptSecret(o)),
    ],
  };
}

/** What was begun is finished first, whatever is given now: one of two passwords is the right one, of three nobody would know. */
function keepPassword(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'on' || !o.password) return undefined;
  const { kept, problem } = o.password;
  if (kept === 'same' || (problem && kept !== 'intended')) return undefined;
  const proof = rootPasswordStep(o, 'provePassword', keptSecret(o));
  if (kept === 'nothing')
    return { message: 'the password with which etcd lets the operator in is kept', steps: [proof] };
  return {
    message: 'the password of root is changed to the one that was given',
    steps: [rootPasswordStep(o, 'intendPassword', keptSecret(o)), rootPasswordStep(o, 'changePassword', 'root'), proof],
  };
}

const keptSecret = (o: Observed): string => keptPasswordName(identity(o.cluster).name);
