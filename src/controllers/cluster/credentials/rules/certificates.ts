/** Rules about certificates: made, copied to where members mount them, and good before anything is started on them. */

import type { SecretAction } from '../../../../access/evaluate/view.ts';
import { writtenFor } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import type { Step } from '../../../../runtime/plan.ts';
import type { ClusterCall } from '../../calls.ts';
import { type Decided, isFormed, type Observed } from '../../observed.ts';
import { certificatesAwaited, certificatesMissing, unreadableSecrets } from '../certificates.ts';

const RETRY_MS = 1_000;

const WORDS = {
  found: 'an authority is made',
  issue: 'a certificate is issued',
  copy: 'a certificate is taken over',
  copyLeaf: 'a renewed certificate is taken over',
  bundle: 'whom members trust is written down',
  publish: 'whom to trust is told to those who connect',
  prepare: 'the successor of an authority is made',
  succeed: 'all members trust the successor of an authority, which takes its place',
} as const satisfies Record<SecretAction, string>;

/** What cannot be written must not keep members of a cluster that exists from being repaired: it is tried again last. */
export const writeSecretsFirst = (o: Observed): Decided =>
  isFormed(o) && o.refusal !== undefined ? undefined : writeSecrets(o);

/** Authorities first: what they sign comes in the same pass. Never on an earlier read: a Secret that exists would count as missing. */
export function writeSecrets(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  const { cas: authorities, certificates, bundles } = o.certificates;
  const due = [
    ...authorities.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
    ...certificates.flatMap(({ need, todo }) => (todo ? [{ todo, secret: writtenFor(need) ?? '' }] : [])),
    ...bundles.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
  ];
  if (due.length === 0) return undefined;
  const steps = due.map(({ todo, secret }): Step<ClusterCall> => {
    const call = { is: 'secret', name: todo, target: secret, cluster: identity(o.cluster) } as const;
    return { do: 'call', call, retryMs: RETRY_MS };
  });
  return { message: due.map(({ todo, secret }) => `${WORDS[todo]}: Secret ${secret}`).join('; '), steps };
}

/** A Pod that is started on a bad certificate crash-loops, or is reached by nobody. */
export function waitForCertificates(o: Observed): Decided {
  const why = certificatesMissing(o) ?? certificatesAwaited(o);
  return why === undefined ? undefined : { message: why };
}
