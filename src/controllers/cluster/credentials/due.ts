/** What is to be requested and written for a cluster's certificates. No Pod starts before it is done. */
import type { SecretAction } from '../../../access/evaluate/view.ts';
import { certificateKind } from '../../../domain/cert-manager.ts';
import { portOf, writtenFor } from '../../../domain/certificate-requirements.ts';
import { identity } from '../../../domain/ownership.ts';
import { MANAGED_SECRET_RETRY_MS } from '../../../domain/timing.ts';
import type { Finding } from '../../../pki/findings.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import type { CredentialsCall, SecretCall } from './calls.ts';
import { correctionOf } from './cert-manager-requests.ts';
import { type CertificateHolding, type CredentialsFacts, isNotStarted, isUnread } from './observed.ts';

export const REQUESTING = 'certificates are requested from cert-manager';

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

/** Certificates that are missing or were changed. */
export function dueRequests(c: CredentialsFacts, findings: readonly Finding[]): readonly Step[] {
  // cert-manager overwrites the Secret that a Certificate names, also a foreign one: its owner has to be known first.
  if (isNotStarted(c) || c.issuance?.is !== 'there' || isUnread(c)) return [];
  const taken = findings.flatMap((f) => (f.is === 'secretForeign' || f.is === 'applicationForeign' ? [f.secret] : []));
  return c.issuance.certificates.filter(({ wanted }) => !taken.includes(wanted.spec.secretName)).flatMap(stepFor);
}

function stepFor({ wanted, holding }: CertificateHolding): readonly Step[] {
  if (holding.is === 'absent') return [{ do: 'create', object: wanted }];
  const fields = holding.is === 'ours' ? correctionOf(holding.object, wanted) : undefined;
  return holding.is === 'ours' && fields
    ? [{ do: 'patch', to: refTo(certificateKind.kind, holding.object), fields }]
    : [];
}

/** CAs first: the certificates that they sign follow in the same reconcile. Not on a stale read: an existing Secret would count as missing. */
export function dueSecrets(c: CredentialsFacts) {
  if (isNotStarted(c) || isUnread(c)) return [];
  const { cas, certificates, bundles } = c.certificates;
  return [
    ...cas.flatMap(({ secret, part, todo }) => (todo ? [{ todo, secret, part }] : [])),
    ...certificates.flatMap(({ need, todo }) =>
      todo ? [{ todo, secret: writtenFor(need) ?? '', part: portOf(need.role) }] : [],
    ),
    ...bundles.flatMap(({ secret, part, todo }) => (todo ? [{ todo, secret, part }] : [])),
  ];
}

export const secretStep = (c: CredentialsFacts, name: SecretCall['name'], target: string): Step<CredentialsCall> => ({
  do: 'call',
  call: { is: 'secret', name, target, cluster: identity(c.cluster) },
  retryMs: MANAGED_SECRET_RETRY_MS,
});

export type DueSecret = ReturnType<typeof dueSecrets>[number];

export const writeMessage = (due: readonly DueSecret[]): string =>
  due.map(({ todo, secret }) => `${MESSAGES[todo]}: Secret ${secret}`).join('; ');

/** Empty if nothing is due. A Certificate that exists may differ for good, where a policy changes it: its Secret is judged, not the request. */
export const dueMessage = (c: CredentialsFacts, findings: readonly Finding[]): string =>
  dueRequests(c, findings).some((step) => step.do === 'create') ? REQUESTING : writeMessage(dueSecrets(c));
