/** What is to be requested and written for a cluster's certificates. No Pod starts before it is done. */
import type { SecretAction } from '../../../access/evaluate/view.ts';
import type { EtcdPortName } from '../../../api/names.ts';
import { certificateKind } from '../../../domain/cert-manager.ts';
import { portOf, writtenFor } from '../../../domain/certificate-requirements.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { type CertificateHolding, isNotStarted, type Observed } from '../observed.ts';
import { correctionOf } from './cert-manager-requests.ts';
import { findingsOf, unreadableSecrets } from './certificates.ts';

/** Certificates that are missing or were changed. */
export function dueRequests(o: Observed): readonly Step[] {
  // cert-manager overwrites the Secret that a Certificate names, also a foreign one: its owner has to be known first.
  if (isNotStarted(o) || o.issuance?.is !== 'there' || unreadableSecrets(o) !== undefined) return [];
  const taken = findingsOf(o).flatMap((f) => (f.is === 'secretForeign' ? [f.secret] : []));
  return o.issuance.certificates.filter(({ wanted }) => !taken.includes(wanted.spec.secretName)).flatMap(stepFor);
}

function stepFor({ wanted, holding }: CertificateHolding): readonly Step[] {
  if (holding.is === 'absent') return [{ do: 'create', object: wanted }];
  const fields = holding.is === 'ours' ? correctionOf(holding.object, wanted) : undefined;
  return holding.is === 'ours' && fields
    ? [{ do: 'patch', to: refTo(certificateKind.kind, holding.object), fields }]
    : [];
}

interface DueSecret {
  readonly todo: SecretAction;
  readonly secret: string;
  readonly part: EtcdPortName;
}

/** CAs first: the certificates that they sign follow in the same reconcile. Not on a stale read: an existing Secret would count as missing. */
export function dueSecrets(o: Observed): readonly DueSecret[] {
  if (isNotStarted(o) || unreadableSecrets(o) !== undefined) return [];
  const { cas, certificates, bundles } = o.certificates;
  return [
    ...cas.flatMap(({ secret, part, todo }) => (todo ? [{ todo, secret, part }] : [])),
    ...certificates.flatMap(({ need, todo }) =>
      todo ? [{ todo, secret: writtenFor(need) ?? '', part: portOf(need.role) }] : [],
    ),
    ...bundles.flatMap(({ secret, part, todo }) => (todo ? [{ todo, secret, part }] : [])),
  ];
}
