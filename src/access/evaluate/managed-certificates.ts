/** What the operator issues itself: good, to be renewed, or to be told to trust others. Pure. */
import { CA, examine } from '../../pki/examine.ts';
import { isGrave } from '../../pki/findings.ts';
import type { Authority, Issued } from './ca.ts';
import { digestOf, trustIn, vouchesFor } from './ca-bundle.ts';
import { given, mayExchange, type Side, vouched } from './port-trust.ts';
import { chainIn, demandsOf, endOf, ours, paperOf, textOf, type World } from './secret-set.ts';
import type { AuthorityView, CertificateView } from './view.ts';

export function issuedOf(
  world: World,
  need: Issued,
  side: Side,
  { certificate }: Pick<Authority, 'certificate'>,
  { findings: ofAuthority }: AuthorityView,
): CertificateView {
  const { secret, findings: foreign } = ours(world, need.secret);
  const seen = examine(paperOf(secret, need.secret), need.secret, demandsOf(world, need.role), world.around.now);
  const signer = trustIn(certificate?.toString() ?? '');
  const elsewhere = signer !== undefined && secret !== undefined && !vouchesFor(signer, chainIn(secret));
  const wrong = seen.findings.some(isGrave) || elsewhere;
  // Nothing that is signed now would last longer than its authority.
  const renewAt =
    (seen.notAfter ?? 0) < (endOf(certificate) ?? 0) ? (seen.notAfter ?? 0) - need.renewBeforeMs : undefined;
  const stuck = [...foreign, ...ofAuthority].length > 0 || side.lost;
  // Members that run must take what is signed; before there are any, they will.
  const signs = !stuck && (certificate ? vouched(side, [certificate]) : !side.begun);
  // Clients must have had the time to learn of an authority that somebody has put there.
  const good = elsewhere && !seen.findings.some(isGrave) && vouched(side, chainIn(secret));
  const early = need.role === 'server' && good && !mayExchange(world, side);
  const usable = secret !== undefined && (side.begun ? chainIn(secret).length > 0 : !wrong);
  const known = { need, usable, ...(seen.notAfter && { notAfter: seen.notAfter }) };
  // What can be made good at once is not worth a word.
  if (signs && !early && (wrong || (renewAt !== undefined && world.around.now >= renewAt)))
    return { ...known, findings: [], todo: 'issue' };
  const renewed = signs && renewAt !== undefined;
  const said = seen.findings.filter((f) => !(renewed && f.is === 'expiresSoon' && f.key.startsWith('tls'))); // it will not come to that
  const untold = secret !== undefined && given(side) && digestOf(textOf(secret, CA)) !== given(side)?.digest;
  return {
    ...known,
    findings: [...foreign, ...(secret ? said : [])],
    ...(renewed && { renewAt }),
    ...(untold && foreign.length === 0 && { todo: 'publish' }),
  };
}
