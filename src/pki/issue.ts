/**
 * Creates a CA, and the certificates that it signs. ECDSA on P-256: generating an RSA key of 2048 bits takes seventy times as long, too
 * much for a thousand clusters, and every supported etcd accepts it. The time and the random source are arguments.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { bits, boolean, integer, numbered, octets, oid, sequence, set, time, utf8 } from './der.ts';
import type { Usage } from './findings.ts';

export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** The random source: new keys, unique serial numbers, and signatures. */
export interface KeySource {
  /** A private key on P-256. */
  readonly key: () => Promise<KeyObject>;
  /** 16 bytes. */
  readonly serial: () => Uint8Array;
  /** ECDSA with SHA-256, as DER: its nonce is random. */
  readonly sign: (content: Uint8Array, by: KeyObject) => Buffer;
}

export interface Leaf {
  /** Its common name. */
  readonly name: string;
  /** DNS names and addresses of IPv4. */
  readonly hosts: readonly string[];
  /** Empty: it may be used for everything. */
  readonly usages: readonly Usage[];
  readonly durationMs: number;
}

/** Certificates are valid for nodes whose clocks are behind by up to this time. */
const BACKDATED_MS = 5 * 60_000;
export const CA_LIFETIME_MS = 10 * 365 * 24 * 60 * 60_000;

const ECDSA_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));
const USAGE: Readonly<Record<Usage, Buffer>> = {
  'server auth': oid('1.3.6.1.5.5.7.3.1'),
  'client auth': oid('1.3.6.1.5.5.7.3.2'),
};

export async function createCA(name: string, now: number, random: KeySource): Promise<KeyPair> {
  const key = await random.key();
  const certificate = signed(key, random, {
    serial: serialOf(random),
    issuer: nameOf(name),
    subject: nameOf(name),
    from: now - BACKDATED_MS,
    until: now + CA_LIFETIME_MS,
    publicKey: createPublicKey(key),
    extensions: [
      critical('2.5.29.19', sequence(boolean(true), integer(Buffer.from([0])))), // it signs leaf certificates, and no further CA
      critical('2.5.29.15', bits(Buffer.from([0b0000_0110]), 1)), // keyCertSign and cRLSign
      extension('2.5.29.14', octets(keyIdOf(createPublicKey(key)))),
    ],
  });
  return { cert: certificate, key: pemOf(key) };
}

/** The issuer name, if `issue` can sign with this certificate: a user's CA may have a longer subject, another type of key, or not be a CA. */
export function signerName(certificate: X509Certificate): string | undefined {
  try {
    const isEc = certificate.publicKey.asymmetricKeyType === 'ec'; // OpenSSL parses it only here: it may be malformed
    return certificate.ca && isEc ? /^CN=(.*)$/.exec(certificate.subject)?.[1] : undefined;
  } catch {
    return undefined;
  }
}

/** Rejects when the CA's certificate or key cannot be parsed. */
export async function issue(by: KeyPair, leaf: Leaf, now: number, random: KeySource): Promise<KeyPair> {
  const ca = new X509Certificate(by.cert);
  const signer = createPrivateKey(by.key);
  const issuer = signerName(ca);
  if (issuer === undefined || signer.asymmetricKeyType !== 'ec')
    throw new Error('this CA was not created by the operator, which cannot sign with it');
  const key = await random.key();
  const certificate = signed(signer, random, {
    serial: serialOf(random),
    issuer: nameOf(issuer),
    subject: nameOf(leaf.name),
    from: now - BACKDATED_MS,
    until: Math.min(now + leaf.durationMs, ca.validToDate.getTime()), // it is not valid beyond its CA
    publicKey: createPublicKey(key),
    extensions: [
      critical('2.5.29.19', sequence()), // not a CA
      critical('2.5.29.15', bits(Buffer.from([0b1000_0000]), 7)), // digital signatures
      extension('2.5.29.35', sequence(numbered(0, 'plain', keyIdOf(ca.publicKey)))),
      ...(leaf.usages.length > 0
        ? [extension('2.5.29.37', sequence(...leaf.usages.map((usage) => USAGE[usage])))]
        : []),
      ...(leaf.hosts.length > 0 ? [extension('2.5.29.17', sequence(...leaf.hosts.map(hostOf)))] : []),
    ],
  });
  return { cert: certificate, key: pemOf(key) };
}

interface ToBeSigned {
  readonly serial: Uint8Array;
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly from: number;
  readonly until: number;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function signed(
  by: KeyObject,
  { sign }: KeySource,
  { serial, issuer, subject, from, until, publicKey, extensions }: ToBeSigned,
): string {
  const content = sequence(
    numbered(0, 'constructed', integer(Buffer.from([2]))), // version 3
    integer(serial),
    ECDSA_SHA256,
    issuer,
    sequence(time(from), time(until)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    numbered(3, 'constructed', sequence(...extensions)),
  );
  const certificate = sequence(content, ECDSA_SHA256, bits(sign(content, by)));
  return new X509Certificate(certificate).toString();
}

const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), octets(value));
const critical = (id: string, value: Buffer): Buffer => sequence(oid(id), boolean(true), octets(value));

/** At most 64 characters (X.520). Names of one cluster differ at the end, so the start is cut. */
const nameOf = (commonName: string): Buffer => sequence(set(sequence(oid('2.5.4.3'), utf8(commonName.slice(-64)))));

function hostOf(host: string): Buffer {
  return isIPv4(host)
    ? numbered(7, 'plain', Buffer.from(host.split('.').map(Number)))
    : numbered(2, 'plain', Buffer.from(host));
}

/** SHA-1 of the public key bits (RFC 5280, 4.2.1.2, method 1). */
function keyIdOf(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return createHash('sha1').update(point).digest();
}

/** Positive, and always 16 bytes: the first byte is not zero, and its highest bit is not set. */
function serialOf({ serial }: KeySource): Uint8Array {
  const [first = 0, ...rest] = serial();
  return Buffer.from([(first & 0x3f) | 0x40, ...rest]);
}

const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
