/** What the operator issues itself: good, to be renewed, or to be told to trust others. Pure. */
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
  { findings: ofAuthority }: CAView,
): CertificateView {
  const { secret, findings: foreign } = ours(world, need.secret);
  const seen = examine(tlsSecretOf(secret, need.secret), need.secret, demandsOf(world, need.role), world.around.now);
  const signer = caBundleIn(certificate?.toString() ?? '');
  const elsewhere = signer !== undefined && secret !== undefined && !accepts(signer, chainIn(secret));
  const wrong = seen.findings.some(isFatal) || elsewhere;
  // Nothing that is signed now would last longer than its authority.
  const renewAt =
    (seen.notAfter ?? 0) < (expiryOf(certificate) ?? 0) ? (seen.notAfter ?? 0) - need.renewBeforeMs : undefined;
  const stuck = [...foreign, ...ofAuthority].length > 0 || side.lost;
  // Members that run must take what is signed; before there are any, they will.
  const signs = !stuck && (certificate ? acceptedByAll(side, [certificate]) : !side.bootstrapped);
  // Clients must have had the time to learn of an authority that somebody has put there.
  const good = elsewhere && !seen.findings.some(isFatal) && acceptedByAll(side, chainIn(secret));
  const early = need.role === 'server' && good && !mayReissue(world, side);
  const usable = secret !== undefined && (side.bootstrapped ? chainIn(secret).length > 0 : !wrong);
  const known = { need, usable, ...(seen.notAfter && { notAfter: seen.notAfter }) };
  // What can be made good at once is not worth a word.
  if (signs && !early && (wrong || (renewAt !== undefined && world.around.now >= renewAt)))
    return { ...known, findings: [], todo: 'issue' };
  const renewed = signs && renewAt !== undefined;
  const said = seen.findings.filter((f) => !(renewed && f.is === 'expiresSoon' && f.key.startsWith('tls'))); // it will not come to that
  const untold =
    secret !== undefined && activeBundle(side) && digestOf(textOf(secret, CA)) !== activeBundle(side)?.digest;
  return {
    ...known,
    findings: [...foreign, ...(secret ? said : [])],
    ...(renewed && { renewAt }),
    ...(untold && foreign.length === 0 && { todo: 'publish' }),
  };
}
