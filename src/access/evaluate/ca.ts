/** Authorities that the operator made for a cluster: whether they are of use, and when they are exchanged. Pure. */
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

/** Where its successor is until all members trust it. */
export const NEXT_CERT = 'next.crt';
export const NEXT_KEY = 'next.key';

export type Issued = Extract<CertificateRequirement, { readonly from: 'operator' }>;

/** What is in its Secret. */
export interface ManagedCA {
  readonly secret: string;
  readonly part: EtcdPortName;
  /** The longest life of what it signs. */
  readonly durationMs: number;
  readonly exists: boolean;
  readonly foreign: readonly Finding[];
  readonly certificate: X509Certificate | undefined;
  readonly next: X509Certificate | undefined;
}

export function managedCAsOf(world: SecretSet, needs: readonly CertificateRequirement[]): readonly ManagedCA[] {
  const issued = needs.filter((need): need is Issued => need.from === 'operator');
  return [...new Set(issued.map(({ authority }) => authority))].map((name) => {
    const signed = issued.filter(({ authority }) => authority === name);
    const { secret, findings } = ours(world, name);
    return {
      secret: name,
      part: portOf(signed[0]?.role ?? 'server'),
      durationMs: Math.max(...signed.map(({ durationMs }) => durationMs)),
      exists: secret !== undefined,
      foreign: findings,
      certificate: signing(pairIn(secret)),
      next: signing(pairIn(secret, NEXT_CERT, NEXT_KEY)),
    };
  });
}

/** What somebody has put there, and nothing can be signed with, is as good as lost: members are not to trust it. */
const signing = (pair: X509Certificate | undefined): X509Certificate | undefined =>
  pair && signerName(pair) !== undefined ? pair : undefined;

/** Whom members are to trust because of it. */
export const targetOf = ({ certificate, next }: ManagedCA): CABundle | undefined =>
  caBundleIn((next ?? certificate)?.toString() ?? '');

/** Whom members may have come to trust because of it until now. */
export function bundleFor({ certificate, next }: ManagedCA): readonly (CABundle | undefined)[] {
  const [present = '', successor = ''] = [certificate?.toString(), next?.toString()];
  return [caBundleIn(present), caBundleIn(present, successor)];
}

/**
 * After two thirds of its life, like all that it signs, or when nothing that it signs would last as long as it should; but
 * never in its first half: certificates that are to last longer than that end with it.
 */
function dueAt({ certificate, durationMs }: ManagedCA): number {
  if (!certificate) return Number.POSITIVE_INFINITY;
  const [from, until] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  const life = until - from;
  return Math.max(from + life / 2, Math.min(from + (life * 2) / 3, until - durationMs));
}

/** Somebody asked for a rotation that has not been begun. */
export function isRotationRequested({ cluster: { metadata, status } }: SecretSet, part: EtcdPortName): boolean {
  const value = requestedRotation(metadata.annotations);
  return value !== undefined && value !== status?.trust?.commanded?.[part];
}

/** A lost authority is not replaced unasked: somebody may have it, and what members have goes on for months. */
export function caView(world: SecretSet, authority: ManagedCA, side: PortTrust): CAView {
  const { secret, foreign, certificate, next, exists, part } = authority;
  if (foreign.length > 0) return { secret, part, findings: foreign };
  if (!isBootstrapped(world)) {
    if (certificate) return { secret, part, findings: ageOf(world, authority) };
    return exists
      ? { secret, part, findings: [{ is: 'notPem', secret, key: KEY }] }
      : { secret, part, findings: [], todo: 'found' };
  }
  const findings: readonly Finding[] = certificate ? ageOf(world, authority) : [{ is: 'caLost', secret }];
  const known = { secret, part, findings, ...(next && { successor: true }) };
  if (next) {
    // The command that it was made for is recorded first, or it would be carried out a second time.
    const ready = !isRotationRequested(world, part) && acceptedByAll(side, [next]) && mayReissue(world, side);
    return { ...known, ...(ready && { todo: 'succeed' }) };
  }
  const due = isRotationRequested(world, part) || world.around.now >= dueAt(authority);
  // One after the other.
  const settled = certificate
    ? side.currentBundle?.digest === side.targetBundle?.digest
    : side.currentBundle !== undefined;
  return { ...known, ...(due && settled && { todo: 'prepare' }) };
}

const ageOf = ({ around }: SecretSet, { certificate, secret }: ManagedCA): readonly Finding[] =>
  certificate ? ages(certificate, { secret, key: CERT }, around.now).filter(isFatal) : [];
