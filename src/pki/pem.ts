/** Parses certificates and keys from PEM. Pure: no file, no clock. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { algorithmOf, oid } from './der.ts';
import { costly } from './yielding.ts';

const BEGIN = '-----BEGIN CERTIFICATE-----';
const END = '-----END CERTIFICATE-----';

/** Parsing is slow, and one evaluation parses the same few texts many times: a cache of the latest. */
const READ: Map<string, readonly X509Certificate[]> = new Map();
const MAX_CHARACTERS = 1024 * 1024;
let characters = 0;

/** OpenSSL takes 60 ms for one certificate of 240 KiB of names. A certificate of the operator has 600 bytes, one with 1,000 names 32 KiB. */
export const MAX_CERTIFICATE = 32 * 1024;
/** During a CA rotation, the CA bundle of members is larger than what a user's Secret may hold. */
const MAX_CERTIFICATES = 1000;

/** All certificates in a text; none when one of them cannot be parsed. */
export const certificatesIn = (text: string): readonly X509Certificate[] =>
  costly(text, 'certificates', () => {
    const known = READ.get(text);
    if (known) return known;
    const certificates = read(text);
    READ.set(text, certificates);
    characters += text.length;
    for (const oldest of READ.keys()) {
      if (characters <= MAX_CHARACTERS) break;
      READ.delete(oldest);
      characters -= oldest.length;
    }
    return certificates;
  });

/**
 * The PEM blocks of certificates: each ends at an END, and starts at the last BEGIN before it, as Go parses them. Every character is
 * read a fixed number of times: a search for the END of each BEGIN takes 19 s for 1 MiB of BEGINs.
 */
export function* blocksIn(text: string): Generator<string> {
  let from = 0;
  for (let end = text.indexOf(END); end >= 0; end = text.indexOf(END, from)) {
    const begin = text.slice(from, end).lastIndexOf(BEGIN);
    if (begin >= 0) yield text.slice(from + begin, end + END.length);
    from = end + END.length;
  }
}

function read(text: string): readonly X509Certificate[] {
  const certificates: X509Certificate[] = [];
  for (const block of blocksIn(text)) {
    const certificate = costly(block, 'certificate', () => certificateIn(block));
    if (!certificate || certificates.length === MAX_CERTIFICATES) return [];
    certificates.push(certificate);
  }
  return certificates;
}

/** OpenSSL parses these properties lazily: reading them here makes their cost part of this step. */
const LAZY = ['ca', 'fingerprint256', 'issuer', 'keyUsage', 'subject', 'validFromDate', 'validToDate'] as const;

function certificateIn(block: string): X509Certificate | undefined {
  if (block.length > MAX_CERTIFICATE) return undefined;
  try {
    const certificate = new X509Certificate(block);
    for (const property of LAZY) void certificate[property];
    void certificate.toString();
    return certificate;
  } catch {
    return undefined;
  }
}

/** The largest key that OpenSSL uses has 12 KiB. */
export const MAX_KEY = 64 * 1024;
const KEY = /-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----([A-Za-z0-9+/=\s]+)-----END \1-----/;
const TYPES = { 'PRIVATE KEY': 'pkcs8', 'RSA PRIVATE KEY': 'pkcs1', 'EC PRIVATE KEY': 'sec1' } as const;

/** A private key that etcd can load: not one with a passphrase. */
export const privateKeyIn = (text: string): KeyObject | undefined => costly(text, 'key', () => keyIn(text));

function keyIn(text: string): KeyObject | undefined {
  if (text.length > MAX_KEY) return undefined;
  const [, label = '', body = ''] = KEY.exec(text) ?? [];
  const type = TYPES[label as keyof typeof TYPES];
  const key = Buffer.from(body, 'base64');
  if (type === undefined || (type === 'pkcs8' && !isQuick(key))) return undefined;
  try {
    return createPrivateKey({ key, format: 'der', type });
  } catch {
    return undefined;
  }
}

/** RSA, RSA-PSS, ECDSA, Ed25519, Ed448. Of a DSA or DH key OpenSSL computes the public half: 0.9 s for 3 KiB of text. */
const QUICK = ['1.2.840.113549.1.1.1', '1.2.840.113549.1.1.10', '1.2.840.10045.2.1', '1.3.101.112', '1.3.101.113'];
const isQuick = (pkcs8: Buffer): boolean => QUICK.some((algorithm) => oid(algorithm).equals(algorithmOf(pkcs8)));

/** More than any honest chain needs. A tenant can write a Secret in which every certificate claims to have issued every other. */
const MAX_SIGNATURES = 16;
/** Go refuses a larger one, and OpenSSL takes 9 ms to verify with one of 64 bits. */
const MAX_EXPONENT = 2n ** 31n - 1n;

const verifies = (certificate: X509Certificate, issuer: X509Certificate): boolean =>
  costly(certificate, `verify ${issuer.fingerprint256}`, () => {
    try {
      const { publicKey } = issuer; // OpenSSL parses it only here: it may be malformed
      return (publicKey.asymmetricKeyDetails?.publicExponent ?? 0n) <= MAX_EXPONENT && certificate.verify(publicKey);
    } catch {
      return false;
    }
  });

/** The shortest chain from the certificate over some of the intermediates to a trusted CA; `undefined` when there is none. */
export function leadsTo(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
): readonly X509Certificate[] | undefined {
  const roots = new Set(trusted.map(({ fingerprint256 }) => fingerprint256));
  const seen = new Set([leaf.fingerprint256]);
  const paths: (readonly X509Certificate[])[] = [[leaf]];
  let signatures = 0;
  for (const path of paths) {
    const last = path.at(-1) ?? leaf;
    if (roots.has(last.fingerprint256)) return path;
    for (const issuer of [...trusted, ...others]) {
      if (seen.has(issuer.fingerprint256) || !issuer.ca || !last.checkIssued(issuer)) continue;
      if (++signatures > MAX_SIGNATURES) return undefined;
      if (!verifies(last, issuer)) continue;
      seen.add(issuer.fingerprint256);
      paths.push([...path, issuer]);
    }
  }
  return undefined;
}
