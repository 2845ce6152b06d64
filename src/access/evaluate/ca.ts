/** CAs that the operator created for a cluster: whether they can sign, and when they are rotated. Pure. */
import type { X509Certificate } from 'node:crypto';
import { type EtcdPortName, requestedRotation } from '../../api/names.ts';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import { portOf } from '../../domain/certificate-requirements.ts';
import { ages, CERT, KEY } from '../../pki/examine.ts';
import { type Finding, isFatal } from '../../pki/findings.ts';
import { signerName } from '../../pki/issue.ts';
import { type CABundle, caBundleIn } from './ca-bundle.ts';
import { acceptedByAll, mayReissue, type PortTrust } from './port-trust.ts';
import { isBootstrapped, ours, pairIn, type SecretSet } from './secret-set.ts';
import type { CAView } from './view.ts';

/** The next CA, until all members trust it. */
export const NEXT_CERT = 'next.crt';
export const NEXT_KEY = 'next.key';

export type Issued = Extract<CertificateRequirement, { readonly from: 'operator' }>;

/** The contents of its Secret. */
export interface ManagedCA {
  readonly secret: string;
  readonly part: EtcdPortName;
  /** The longest duration of a certificate that it signs. */
  readonly durationMs: number;
  readonly exists: boolean;
  readonly foreign: readonly Finding[];
  readonly certificate: X509Certificate | undefined;
  /** `undefined` also when it has expired before it was promoted: another one replaces it. */
  readonly next: X509Certificate | undefined;
  /** The CA bundles that members may have loaded until now. */
  readonly bundles: readonly (CABundle | undefined)[];
}

export function managedCAsOf(world: SecretSet, needs: readonly CertificateRequirement[]): readonly ManagedCA[] {
  const issued = needs.filter((need): need is Issued => need.from === 'operator');
  return [...new Set(issued.map(({ caSecret }) => caSecret))].map((name) => {
    const signed = issued.filter(({ caSecret }) => caSecret === name);
    const { secret, findings } = ours(world, name);
    const certificate = signing(pairIn(secret));
    const next = signing(pairIn(secret, NEXT_CERT, NEXT_KEY));
    const [current = '', successor = ''] = [certificate?.toString(), next?.toString()];
    return {
      secret: name,
      part: portOf(signed[0]?.role ?? 'server'),
      durationMs: Math.max(...signed.map(({ durationMs }) => durationMs)),
      exists: secret !== undefined,
      foreign: findings,
      certificate,
      next: next && world.around.now < next.validToDate.getTime() ? next : undefined,
      bundles: [caBundleIn(current), caBundleIn(current, successor)],
    };
  });
}

/** A CA that a user has put there and that cannot sign counts as lost: members must not trust it. */
const signing = (pair: X509Certificate | undefined): X509Certificate | undefined =>
  pair && signerName(pair) !== undefined ? pair : undefined;

/**
 * The CA bundle after the rotation. Where the seed was deleted during a rotation, the next one starts with the current CA, which
 * has signed all certificates, and the rotation goes on with the member that it then has.
 */
export const targetOf = (world: SecretSet, ca: ManagedCA): CABundle | undefined =>
  caBundleIn((ca.next && (isBootstrapped(world) || !canSign(world, ca)) ? ca.next : ca.certificate)?.toString() ?? '');

const canSign = (world: SecretSet, ca: ManagedCA): boolean =>
  ca.certificate !== undefined && ageOf(world, ca).length === 0;

/**
 * A CA is rotated after two thirds of its lifetime, or as soon as a certificate that it signs would be cut short by the CA's own
 * expiry. Never in its first half: certificates with a longer duration than that expire together with the CA.
 */
function dueAt({ certificate, durationMs }: ManagedCA): number {
  if (!certificate) return Number.POSITIVE_INFINITY;
  const [from, until] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const life = until - from;
  return Math.max(from + life / 2, Math.min(from + (life * 2) / 3, until - durationMs));
}

/** A user has requested a CA rotation (annotation rotate-ca) that has not started yet. */
export function isRotationRequested({ cluster: { metadata, status } }: SecretSet, part: EtcdPortName): boolean {
  const value = requestedRotation(metadata.annotations);
  return value !== undefined && value !== status?.trust?.commanded?.[part];
}

/** The operator does not replace a lost CA unasked: the user may have a backup, and the certificates of members stay valid for months. */
export function caView(world: SecretSet, ca: ManagedCA, side: PortTrust): CAView {
  const { secret, foreign, certificate, next, exists, part } = ca;
  if (foreign.length > 0) return { secret, part, findings: foreign };
  if (!isBootstrapped(world)) {
    if (next && !canSign(world, ca)) return { secret, part, findings: [], todo: 'promoteNextCA' };
    if (certificate) return { secret, part, findings: ageOf(world, ca) };
    return exists
      ? { secret, part, findings: [{ is: 'notPem', secret, key: KEY }] }
      : { secret, part, findings: [], todo: 'createCA' };
  }
  const findings: readonly Finding[] = certificate ? ageOf(world, ca) : [{ is: 'caLost', secret }];
  const known = { secret, part, findings, ...(next && { successor: true }) };
  if (next) {
    // The request that it was created for is recorded first, or the CA would be rotated a second time.
    const ready = !isRotationRequested(world, part) && acceptedByAll(side, [next]) && mayReissue(world, side);
    return { ...known, ...(ready && { todo: 'promoteNextCA' }) };
  }
  const due = isRotationRequested(world, part) || world.around.now >= dueAt(ca);
  // One CA rotation after the other, unless the CA has expired: members that restart with it would be as unreachable as before.
  const settled =
    certificate && ageOf(world, ca).length === 0
      ? side.currentBundle?.digest === side.targetBundle?.digest
      : side.currentBundle !== undefined;
  return { ...known, ...(due && settled && { todo: 'createNextCA' }) };
}

function ageOf({ around }: SecretSet, { certificate, secret }: ManagedCA): readonly Finding[] {
  return certificate ? ages(certificate, { secret, key: CERT }, around.now).filter(isFatal) : [];
}
