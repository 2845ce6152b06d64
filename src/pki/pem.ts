/** Certificates and keys out of their text form. Pure: no file, no clock. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Reading takes a while, and one judgement looks at the same few texts again and again: these were read last. */
const READ: Map<string, readonly X509Certificate[]> = new Map();
const MOST_CHARACTERS = 1024 * 1024;
let characters = 0;

/** All certificates in a text; none when there is none, or when one of them cannot be read. */
export function certificatesIn(text: string): readonly X509Certificate[] {
  const known = READ.get(text);
  if (known) return known;
  const certificates = read(text);
  READ.set(text, certificates);
  characters += text.length;
  for (const oldest of READ.keys()) {
    if (characters <= MOST_CHARACTERS) break;
    READ.delete(oldest);
    characters -= oldest.length;
  }
  return certificates;
}

/** So many claim to be in there. */
export const countIn = (text: string): number => text.match(CERTIFICATE)?.length ?? 0;

function read(text: string): readonly X509Certificate[] {
  try {
    return (text.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
  } catch {
    return [];
  }
}

/** A key that etcd can read: not one behind a passphrase. */
export function privateKeyIn(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

/** No honest chain needs as many. Somebody who writes a Secret decides how many certificates claim to have issued each other. */
const MOST_SIGNATURES = 16;

/** The chain that leads from the first certificate over some of the others to one that is trusted; the shortest, if there is one. */
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
      if (++signatures > MOST_SIGNATURES) return undefined;
      if (!last.verify(issuer.publicKey)) continue;
      seen.add(issuer.fingerprint256);
      paths.push([...path, issuer]);
    }
  }
  return undefined;
}
