/** Rules about the Certificates that are requested from cert-manager. */
import { certificateKind } from '../../../../domain/cert-manager.ts';
import { refTo, type Step } from '../../../../runtime/plan.ts';
import { type CertificateHolding, type Decided, isFormed, type Observed } from '../../observed.ts';
import { correctionOf } from '../cert-manager-requests.ts';
import { findingsOf, unreadableSecrets } from '../certificates.ts';

export const requestCertificates = (o: Observed): Decided => (isFormed(o) ? undefined : correctRequests(o));

export function correctRequests(o: Observed): Decided {
  // cert-manager overwrites the Secret that a Certificate names, also a foreign one: its owner has to be known first.
  if (o.issuance?.is !== 'there' || unreadableSecrets(o) !== undefined) return undefined;
  const taken = findingsOf(o).flatMap((f) => (f.is === 'secretForeign' ? [f.secret] : []));
  const steps = o.issuance.certificates
    .filter(({ wanted }) => !taken.includes(wanted.spec.secretName))
    .flatMap(stepFor);
  return steps.length === 0 ? undefined : { message: 'certificates are requested from cert-manager', steps };
}

function stepFor({ wanted, holding }: CertificateHolding): readonly Step[] {
  if (holding.is === 'absent') return [{ do: 'create', object: wanted }];
  const fields = holding.is === 'ours' ? correctionOf(holding.object, wanted) : undefined;
  return holding.is === 'ours' && fields
    ? [{ do: 'patch', to: refTo(certificateKind.kind, holding.object), fields }]
    : [];
}
