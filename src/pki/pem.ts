/** Certificates and keys out of their text form. Pure: no file, no clock. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** All certificates in a text; none when there is none, or when one of them cannot be read. */
export function certificatesIn(text: string): readonly X509Certificate[] {
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

/** Whether a chain leads from the first certificate over some of the others to one that is trusted. */
export function leadsTo(
  leaf: X509Certificate,
  others: readonly X509Certificate[],
  trusted: readonly X509Certificate[],
): readonly X509Certificate[] | undefined {
  let frontier: readonly (readonly X509Certificate[])[] = [[leaf]];
  for (let depth = 0; depth <= others.length + 1; depth++) {
    const next: (readonly X509Certificate[])[] = [];
    for (const path of frontier) {
      const last = path.at(-1) ?? leaf;
      if (trusted.some((root) => root.fingerprint256 === last.fingerprint256)) return path;
      for (const issuer of [...trusted, ...others])
        if (!path.includes(issuer) && hasIssued(issuer, last)) next.push([...path, issuer]);
    }
    frontier = next;
  }
  return undefined;
}

const hasIssued = (issuer: X509Certificate, issued: X509Certificate): boolean =>
  issuer.ca && issued.checkIssued(issuer) && issued.verify(issuer.publicKey);
