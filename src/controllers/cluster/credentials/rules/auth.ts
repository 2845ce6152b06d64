/** Rules about logging in: asked for as soon as it can be, and the password of root as the user says. */
import { keptPasswordName } from '../../../../api/names.ts';
import { identity } from '../../../../domain/ownership.ts';
import { isHealthy } from '../../disruption.ts';
import { rootStep } from '../../etcd-calls.ts';
import { type Answered, entriesOf, memberOf, type Observed } from '../../observed.ts';
import { passwordMissing } from '../auth.ts';
import { unreadSecrets } from '../certificates.ts';

/** A cluster that is to ask for a password would serve everybody until there is one. */
export function waitForPassword(o: Observed): Answered {
  const problem = passwordMissing(o);
  return problem && { why: problem.message };
}

/** Before others join: the fewer clients were served without a log-in, the better, and a seed has nobody to wait for. */
export const guardSeed = (o: Observed): Answered => (entriesOf(o)?.length === 1 ? enable(o) : undefined);

/** After all that is urgent: nobody is in danger while a password is not changed yet. */
export const guard = (o: Observed): Answered => enable(o) ?? keepPassword(o);

/** Everybody has to hear of it: one that is behind would go on letting everybody in for a while. */
const allHear = (o: Observed): boolean =>
  (entriesOf(o) ?? []).every((entry) => {
    const m = memberOf(o, entry);
    return m !== undefined && isHealthy(o, m);
  });

/**
 * etcd lets nobody try a password before log-ins are on, and then it is too late to find out that it was never set: root is
 * made anew with the password that is kept, in the same pass, and whoever it was before is not asked.
 */
function enable(o: Observed): Answered {
  if (unreadSecrets(o) !== undefined) return undefined; // the password of an earlier read may be another by now
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'off' || !allHear(o)) return undefined;
  if (!o.password || (o.password.problem && o.password.kept !== 'intended')) return undefined;
  return {
    why: 'log-ins are turned on: root gets the password that was given',
    steps: [
      rootStep(o, 'intendPassword', keptSecret(o)),
      rootStep(o, 'makeRoot', 'root'),
      rootStep(o, 'enableAuth', 'root'),
      rootStep(o, 'provePassword', keptSecret(o)),
    ],
  };
}

/** What was begun is finished first, whatever is given now: one of two passwords is the right one, of three nobody would know. */
function keepPassword(o: Observed): Answered {
  if (unreadSecrets(o) !== undefined) return undefined;
  if (o.etcd.is !== 'answers' || o.etcd.auth !== 'on' || !o.password) return undefined;
  const { kept, problem } = o.password;
  if (kept === 'same' || (problem && kept !== 'intended')) return undefined;
  const proof = rootStep(o, 'provePassword', keptSecret(o));
  if (kept === 'nothing') return { why: 'the password with which etcd lets the operator in is kept', steps: [proof] };
  return {
    why: 'the password of root is changed to the one that was given',
    steps: [rootStep(o, 'intendPassword', keptSecret(o)), rootStep(o, 'changePassword', 'root'), proof],
  };
}

const keptSecret = (o: Observed): string => keptPasswordName(identity(o.cluster).name);
