/** Verifies a certificate before a member starts with it: why would a handshake with it fail? Pure: the time is an argument. */
import type { X509Certificate } from 'node:crypto';
import { iso } from '../lib/time.ts';
import type { Finding, Role, Usage } from './findings.ts';
import { blocksIn, certificatesIn, leadsTo, MAX_CERTIFICATE, MAX_KEY, privateKeyIn } from './pem.ts';
import { costly } from './yielding.ts';

/** The keys of a Secret that are read. */
export interface TlsSecret {
  readonly secret: string;
  readonly data: Readonly<Record<string, string>>;
}

export interface Requirements {
  readonly role: Role;
  /** Host names of members; `*.` stands for every member, present and future. */
  readonly memberNames: readonly string[];
  /** Host names that a new member needs, and members that run do not. */
  readonly newMemberNames?: readonly string[];
  /** Host names and addresses that clients connect to. */
  readonly clientNames: readonly string[];
  /** mTLS: clients must have a certificate, and etcd's own gRPC gateway is such a client. */
  readonly mutual: boolean;
  /** The Secret whose ca.crt must verify the certificate, if it is not its own. */
  readonly trust?: TlsSecret | undefined;
}

export interface Examined {
  readonly findings: readonly Finding[];
  /** When the certificate expires, in milliseconds since 1970; absent when it cannot be parsed. */
  readonly notAfter?: number;
}

export const CERT = 'tls.crt';
export const KEY = 'tls.key';
export const CA = 'ca.crt';

const OID: Readonly<Record<Usage, string>> = { 'server auth': '1.3.6.1.5.5.7.3.1', 'client auth': '1.3.6.1.5.5.7.3.2' };
const ANY_USAGE = '2.5.29.37.0';
const DAY_MS = 24 * 60 * 60_000;

/** More than the CA bundle of a browser has. */
const MAX_CERTIFICATES = 200;
/** The CA bundle of a browser has 250 KiB. Three of this size, as members have during two overlapping CA rotations, fit into a Secret. */
const MAX_BYTES: Readonly<Record<string, number>> = { [CERT]: 320 * 1024, [KEY]: MAX_KEY, [CA]: 320 * 1024 };

/** A Secret holds up to 1 MiB: parsing all of it would delay the reconciles of all other clusters. */
function excess({ secret, data }: TlsSecret, keys: readonly string[]): readonly Finding[] {
  return keys.flatMap((key): readonly Finding[] => {
    const text = data[key] ?? '';
    const [bytes, limit] = [Buffer.byteLength(text), MAX_BYTES[key] ?? 0];
    if (bytes > limit) return [{ is: 'tooLarge', secret, key, what: 'all', bytes, limit }];
    const sizes = Array.from(blocksIn(text), ({ length }) => length);
    if (sizes.length > MAX_CERTIFICATES) return [{ is: 'tooMany', secret, key, most: MAX_CERTIFICATES }];
    const largest = Math.max(0, ...sizes);
    if (largest <= MAX_CERTIFICATE) return [];
    return [{ is: 'tooLarge', secret, key, what: 'certificate', bytes: largest, limit: MAX_CERTIFICATE }];
  });
}

export function examine(tls: TlsSecret | undefined, secret: string, demands: Requirements, now: number): Examined {
  if (!tls) return { findings: [{ is: 'secretMissing', secret }] };
  const trust = demands.trust ?? tls;
  const wanted = [CERT, KEY].map((key) => ({ from: tls, key }));
  const missing = [...wanted, { from: trust, key: CA }].filter(({ from, key }) => !from.data[key]?.trim());
  if (missing.length > 0)
    return { findings: missing.map(({ from, key }) => ({ is: 'keyMissing', secret: from.secret, key })) };
  const tooMuch = excess(tls, demands.trust ? [CERT, KEY] : [CERT, KEY, CA]);
  if (tooMuch.length > 0) return { findings: tooMuch };
  const [leaf, ...others] = certificatesIn(tls.data[CERT] ?? '');
  const key = privateKeyIn(tls.data[KEY] ?? '');
  const roots = certificatesIn(trust.data[CA] ?? '');
  const unreadable: readonly Finding[] = [
    ...(leaf ? [] : [{ is: 'notPem', secret, key: CERT } as const]),
    ...(key ? [] : [{ is: 'notPem', secret, key: KEY } as const]),
    ...(roots.length > 0 ? [] : [{ is: 'notPem', secret: trust.secret, key: CA } as const]),
  ];
  if (!leaf || !key || unreadable.length > 0) return { findings: unreadable };
  // A CA that was renewed with the same key may be in ca.crt twice, and only one of the two has to be valid.
  const valid = (c: X509Certificate): boolean => c.validFromDate.getTime() <= now && now < c.validToDate.getTime();
  const path = leadsTo(leaf, others.filter(valid), roots.filter(valid)) ?? leadsTo(leaf, others, roots);
  const findings: readonly Finding[] = [
    ...unknownKeys([leaf, ...others], { secret, key: CERT }),
    ...unknownKeys(
      roots.filter((root) => path?.includes(root) === true || !kindOf(root).startsWith('rsa')), // an unused RSA CA does no harm
      { secret: trust.secret, key: CA },
    ),
    ...(leaf.checkPrivateKey(key) ? [] : [{ is: 'keyMismatch', secret } as const]),
    ...(path ? [] : [{ is: 'untrusted', secret, issuer: lineOf(leaf.issuer), trust: trust.secret } as const]),
    ...names(leaf, secret, demands),
    ...usages(leaf, secret, demands),
    ...ages(leaf, { secret, key: CERT }, now),
    ...(path ?? []).slice(1, -1).flatMap((between) => ages(between, { secret, key: CERT }, now)),
    ...(path ?? [])
      .slice(1)
      .slice(-1)
      .flatMap((root) => ages(root, { secret: trust.secret, key: CA }, now)),
  ];
  return { findings, notAfter: leaf.validToDate.getTime() };
}

/** The key types of Go's TLS. With any other, etcd fails at the next handshake, all members at once, or at its next start. */
const KNOWN_KEYS: readonly string[] = ['rsa', 'ec prime256v1', 'ec secp384r1', 'ec secp521r1', 'ed25519'];
/** OpenSSL, and with it the operator and many clients, refuses shorter RSA keys. */
const MIN_BITS = 2048;
function kindOf(certificate: X509Certificate): string {
  try {
    const { asymmetricKeyType: type = 'unknown', asymmetricKeyDetails: details } = certificate.publicKey;
    if ((details?.modulusLength ?? MIN_BITS) < MIN_BITS) return `${type} of ${details?.modulusLength} bits`;
    return details?.namedCurve === undefined ? type : `${type} ${details.namedCurve}`;
  } catch {
    return 'unknown'; // OpenSSL parses the key only here, and it may be malformed
  }
}
const unknownKeys = (
  certificates: readonly X509Certificate[],
  where: { readonly secret: string; readonly key: string },
): readonly Finding[] =>
  [...new Set(certificates.map(kindOf))]
    .filter((kind) => !KNOWN_KEYS.includes(kind))
    .map((kind) => ({ is: 'keyUnknown', ...where, kind }));

/** `CN=a\nO=b` as one line. The issuer chose the text, and the API server rejects a condition message that is too long. Node has no text for an empty name. */
const MAX_TEXT = 200;
const lineOf = (name: string | undefined): string =>
  name?.split('\n').join(', ').slice(0, MAX_TEXT) ?? 'an unnamed issuer';

/** A host name that no member has: only a wildcard certificate covers it. */
const PROBE = 'zz-any-member';
const covers = (leaf: X509Certificate, name: string): boolean =>
  costly(leaf, `covers ${name}`, () => {
    if (/^[\d.]+$|:/.test(name)) return leaf.checkIP(name) !== undefined;
    const host = name.startsWith('*.') ? `${PROBE}${name.slice(1)}` : name;
    return leaf.checkHost(host, { subject: 'never', partialWildcards: false }) !== undefined;
  });

/** Of these host names, those that the certificate is not valid for; `*.` stands for every member. */
export const lackedNames = (leaf: X509Certificate, wanted: readonly string[]): readonly string[] =>
  wanted.filter((name) => !covers(leaf, name));

function names(leaf: X509Certificate, secret: string, demands: Requirements): readonly Finding[] {
  const lacking = (wanted: readonly string[] = []): readonly string[] => lackedNames(leaf, wanted);
  const [forMembers, forClients] = [lacking(demands.memberNames), lacking(demands.clientNames)];
  const forNew = lacking(demands.newMemberNames);
  return [
    ...(forMembers.length > 0 ? [{ is: 'memberNameMissing', secret, names: forMembers } as const] : []),
    ...(forNew.length > 0 ? [{ is: 'newMemberNameMissing', secret, names: forNew } as const] : []),
    ...(forClients.length > 0 ? [{ is: 'clientNameMissing', secret, names: forClients } as const] : []),
  ];
}

const NEEDED: Readonly<Record<Role, readonly Usage[]>> = {
  server: ['server auth'],
  peer: ['server auth', 'client auth'],
  operator: ['client auth'],
  application: ['client auth'],
};

function usages(leaf: X509Certificate, secret: string, { role, mutual }: Requirements): readonly Finding[] {
  const stated = leaf.keyUsage; // the extended one; without the extension everything is allowed
  const lacks = (usage: Usage): boolean =>
    stated !== undefined && !stated.includes(OID[usage]) && !stated.includes(ANY_USAGE);
  return [
    ...NEEDED[role].filter(lacks).map((usage) => ({ is: 'usageMissing', secret, usage }) as const),
    ...(role === 'server' && mutual && lacks('client auth') ? [{ is: 'gatewayUsageMissing', secret } as const] : []),
  ];
}

/** When its expiry is reported: in the last fifth of its lifetime, and at most a month before its end. */
export const soonFrom = (notBefore: number, notAfter: number): number =>
  notAfter - Math.min(30 * DAY_MS, (notAfter - notBefore) / 5);

/** Whether a certificate has expired, is not valid yet, or expires soon. */
export function ages(
  certificate: X509Certificate,
  where: { readonly secret: string; readonly key: string },
  now: number,
): readonly Finding[] {
  const [from, until] = [certificate.validFromDate.getTime(), certificate.validToDate.getTime()];
  if (now >= until) return [{ is: 'expired', ...where, at: iso(until) }];
  if (now < from) return [{ is: 'notYetValid', ...where, at: iso(from) }];
  return now >= soonFrom(from, until) ? [{ is: 'expiresSoon', ...where, at: iso(until) }] : [];
}
