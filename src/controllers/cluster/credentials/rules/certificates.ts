/** Rules about certificates: issued, copied into the Secrets that members mount, and valid before a member starts with them. */

import type { SecretAction } from '../../../../access/evaluate/view.ts';
import { writtenFor } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { MANAGED_SECRET_RETRY_MS } from '../../../../domain/timing.ts';
import type { Step } from '../../../../runtime/plan.ts';
import type { ClusterCall } from '../../calls.ts';
import { type Decided, isFormed, type Observed } from '../../observed.ts';
import { certificatesAwaited, certificatesMissing, unreadableSecrets } from '../certificates.ts';

const MESSAGES = {
  createCA: 'a CA is created',
  issueCertificate: 'a certificate is issued',
  copySecret: 'a certificate is copied',
  copyCertificate: 'a renewed certificate is copied',
  writeCABundle: 'the CA bundle of members is written',
  publishCABundle: 'the CA bundle for clients is updated',
  createNextCA: 'the next CA is created',
  promoteNextCA: 'all members trust the next CA, which replaces the current one',
} as const satisfies Record<SecretAction, string>;

/** A write that fails must not keep the members of a formed cluster from being repaired: it is retried after all other rules. */
export const writeSecretsFirst = (o: Observed): Decided =>
  isFormed(o) && o.refusal !== undefined ? undefined : writeSecrets(o);

/** CAs first: the certificates that they sign follow in the same reconcile. Not on a stale read: an existing Secret would count as missing. */
export function writeSecrets(o: Observed): Decided {
  if (unreadableSecrets(o) !== undefined) return undefined;
  const { cas, certificates, bundles } = o.certificates;
  const due = [
    ...cas.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
    ...certificates.flatMap(({ need, todo }) => (todo ? [{ todo, secret: writtenFor(need) ?? '' }] : [])),
    ...bundles.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
  ];
  if (due.length === 0) return undefined;
  const steps = due.map(({ todo, secret }): Step<ClusterCall> => {
    const call = { is: 'secret', name: todo, target: secret, cluster: identity(o.cluster) } as const;
    return { do: 'call', call, retryMs: MANAGED_SECRET_RETRY_MS };
  });
  return { message: due.map(({ todo, secret }) => `${MESSAGES[todo]}: Secret ${secret}`).join('; '), steps };
}

/** A Pod that starts with an invalid certificate crash-loops, or no client can connect to it. */
export function waitForCertificates(o: Observed): Decided {
  const message = certificatesMissing(o) ?? certificatesAwaited(o);
  return message === undefined ? undefined : { message };
}
