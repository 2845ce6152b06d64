/** Keys and certificates of a local cluster: one CA, one certificate per component, kubeconfigs that contain them. */
import 'reflect-metadata'; // x509 wants it loaded first
import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000;
x509.cryptoProvider.set(webcrypto);

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateAuthority extends KeyPair {
  issue(name: { readonly user: string; readonly group?: string }, hosts?: readonly string[]): Promise<KeyPair>;
}

const pem = async (key: webcrypto.CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');

const validity = (): { readonly notBefore: Date; readonly notAfter: Date; readonly serialNumber: string } => ({
  notBefore: new Date(Date.now() - 3600_000), // clocks may differ slightly
  notAfter: new Date(Date.now() + TEN_YEARS_MS),
  serialNumber: `01${randomBytes(15).toString('hex')}`,
});

const generate = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

export async function createCA(name = 'etcd-operator local cluster'): Promise<CertificateAuthority> {
  const keys = await generate();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
    ],
  });
  return loadCA({ cert: certificate.toString('pem'), key: await pem(keys.privateKey) });
}

/** A CA that was created earlier, for a node that joins later. */
export async function loadCA(pair: KeyPair): Promise<CertificateAuthority> {
  const ca = new x509.X509Certificate(pair.cert);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    x509.PemConverter.decodeFirst(pair.key),
    ALGORITHM,
    false,
    ['sign'],
  );
  return {
    ...pair,
    issue: async ({ user, group }, hosts = []) => {
      const leaf = await generate();
      const cert = await x509.X509CertificateGenerator.create({
        ...validity(),
        subject: [{ CN: [user] }, ...(group ? [{ O: [group] }] : [])],
        issuer: ca.subject,
        publicKey: leaf.publicKey,
        signingKey,
        signingAlgorithm: ALGORITHM,
        extensions: [
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
          new x509.SubjectAlternativeNameExtension(
            hosts.map((value) => ({ type: /^[\d.]+$/.test(value) ? 'ip' : 'dns', value }) as const),
          ),
        ],
      });
      return { cert: cert.toString('pem'), key: await pem(leaf.privateKey) };
    },
  };
}

/** The key that signs service account tokens. */
export const serviceAccountKey = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

export function kubeconfig(server: string, ca: string, user: KeyPair): string {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'local', cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [
      { name: 'local', user: { 'client-certificate-data': base64(user.cert), 'client-key-data': base64(user.key) } },
    ],
    contexts: [{ name: 'local', context: { cluster: 'local', user: 'local' } }],
    'current-context': 'local',
  });
}
