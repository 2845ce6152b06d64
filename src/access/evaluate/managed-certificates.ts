/** Certificates that the operator issues: valid, to be renewed, or due for another CA bundle next to them. Pure. */
import { CA, examine } from '../../pki/examine.ts';
import { isFatal } from '../../pki/findings.ts';
import type { Issued, ManagedCA } from './ca.ts';
import { accepts, caBundleIn, digestOf } from './ca-bundle.ts';
import { acceptedByAll, activeBundle, mayReissue, type PortTrust } from './port-trust.ts';
import { chainIn, demandsOf, expiryOf, ours, type SecretSet, textOf, tlsSecretOf } from './secret-set.ts';
import type { CAView, CertificateView } from './view.ts';

export function managedCertificatesOf(
  world: SecretSet,
  need: Issued,
  side: PortTrust,
  { certificate }: Pick<ManagedCA, 'certificate'>,
  { findings: ofCA }: CAView,
): CertificateView {
  const { secret, findings: foreign } = ours(world, need.secret);
  const seen = examine(tlsSecretOf(secret, need.secret), need.secret, demandsOf(world, need.role), world.around.now);
  const signer = caBundleIn(certificate?.toString() ?? '');
  const elsewhere = signer !== undefined && secret !== undefined && !accepts(signer, chainIn(secret));
  const wrong = seen.findings.some(isFatal) || elsewhere;
  // A certificate that expires together with its CA cannot be extended by renewing it.
  const renewAt =
    (seen.notAfter ?? 0) < (expiryOf(certificate) ?? 0) ? (seen.notAfter ?? 0) - need.renewBeforeMs : undefined;
  const stuck = [...foreign, ...ofCA].length > 0 || side.lost;
  // Running members must accept what the CA signs; before there are any, the first ones will.
  const signs = !stuck && (certificate ? acceptedByAll(side, [certificate]) : !side.bootstrapped);
  // Clients must have had the time to get a CA that a user has put there.
  const good = elsewhere && !seen.findings.some(isFatal) && acceptedByAll(side, chainIn(secret));
  const early = need.role === 'server' && good && !mayReissue(world, side);
  const usable = secret !== undefined && (side.bootstrapped ? chainIn(secret).length > 0 : !wrong);
  const known = { need, usable, ...(seen.notAfter && { notAfter: seen.notAfter }) };
  // A finding that this reconcile repairs is not reported.
  if (signs && !early && (wrong || (renewAt !== undefined && world.around.now >= renewAt)))
    return { ...known, findings: [], todo: 'issueCertificate' };
  const renewed = signs && renewAt !== undefined;
  const reported = seen.findings.filter((f) => !(renewed && f.is === 'expiresSoon' && f.key.startsWith('tls'))); // it is renewed before
  const outdated =
    secret !== undefined && activeBundle(side) && digestOf(textOf(secret, CA)) !== activeBundle(side)?.digest;
  return {
    ...known,
    findings: [...foreign, ...(secret ? reported : [])],
    ...(renewed && { renewAt }),
    ...(outdated && foreign.length === 0 && { todo: 'publishCABundle' }),
  };
}
