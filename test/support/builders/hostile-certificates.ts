/** Certificates and keys that are slow to parse or to verify: each has the maximum size that the operator reads. */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { bits, boolean, integer, numbered, octets, oid, sequence, set, time, utf8 } from '../../../src/pki/der.ts';
import { NOW } from './builders.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-521' });
const ECDSA = sequence(oid('1.2.840.10045.4.3.2'));
const RSA = sequence(oid('1.2.840.113549.1.1.11'), Buffer.from([5, 0]));
/** PEM is a third longer, and the rest of the certificate needs some space too. */
const FLOOD_BYTES = 23 * 1024;
const flood = (unit: Buffer): readonly Buffer[] =>
  Array.from({ length: Math.floor(FLOOD_BYTES / unit.length) }, () => unit);

const attribute = (value: string): Buffer => sequence(oid('2.5.4.3'), utf8(value));
const named = (value: string): Buffer => sequence(set(attribute(value)));
const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), octets(value));
const isCa = extension('2.5.29.19', sequence(boolean(true)));

interface Parts {
  readonly subject?: Buffer;
  readonly issuer?: Buffer;
  readonly key?: KeyObject;
  readonly extensions?: readonly Buffer[];
}

let serial = 0;
/** Signed with the key above; for an RSA key, with an invalid signature of the right length, which takes a verification to reject. */
function certificate({
  subject = named('a'),
  issuer = named('a'),
  key = publicKey,
  extensions = [isCa],
}: Parts): string {
  const rsaBits = key.asymmetricKeyDetails?.modulusLength;
  const algorithm = rsaBits === undefined ? ECDSA : RSA;
  const content = sequence(
    numbered(0, 'constructed', integer(Buffer.from([2]))),
    integer(Buffer.from([1, ++serial >> 8, serial & 0xff])),
    algorithm,
    issuer,
    sequence(time(NOW - 1e9), time(NOW + 1e11)),
    subject,
    key.export({ type: 'spki', format: 'der' }),
    numbered(3, 'constructed', sequence(...extensions)),
  );
  const signature = rsaBits === undefined ? sign('sha256', content, privateKey) : Buffer.alloc(rsaBits / 8, 1);
  return new X509Certificate(sequence(content, algorithm, bits(signature))).toString();
}

const odd = (bytes: number): Buffer => {
  const random = randomBytes(bytes);
  random[0] = (random[0] ?? 0) | 0x80;
  random[bytes - 1] = (random[bytes - 1] ?? 0) | 1;
  return random;
};
const rsa = (bytes: number, exponent: Buffer): KeyObject =>
  createPublicKey({
    key: sequence(
      sequence(oid('1.2.840.113549.1.1.1'), Buffer.from([5, 0])),
      bits(sequence(integer(odd(bytes)), integer(exponent))),
    ),
    format: 'der',
    type: 'spki',
  });

const names = (...all: readonly Buffer[]): Buffer => extension('2.5.29.17', sequence(...all));

/** One each, for tls.crt, ca.crt and next.crt. */
export const certificates: Readonly<Record<string, () => string>> = {
  'a certificate like others': () => certificate({}),
  'a name of many parts': () => certificate({ subject: sequence(...flood(set(attribute('a')))) }),
  'an issuer of many parts': () => certificate({ issuer: sequence(set(...flood(attribute('a')))) }),
  'many hosts': () => certificate({ extensions: [isCa, names(...flood(numbered(2, 'plain', Buffer.from('*.a'))))] }),
  'many addresses': () =>
    certificate({ extensions: [isCa, names(...flood(numbered(7, 'plain', Buffer.from([1, 2, 3, 4]))))] }),
  'many usages': () => certificate({ extensions: [isCa, extension('2.5.29.37', sequence(...flood(oid('1.2.3.4'))))] }),
  'many extensions': () => certificate({ extensions: [isCa, ...flood(extension('1.2.3.4', Buffer.from('a')))] }),
  'a key of RSA that takes long': () => certificate({ key: rsa(1024, Buffer.from([0x7f, 0xff, 0xff, 0xff])) }),
  'an exponent of RSA that takes long': () => certificate({ key: rsa(2048, odd(8)) }),
};

/** As many of them as the operator reads from one key of a Secret. */
export function bundle(make: () => string): string {
  const all = [make()];
  while (all.length < 200 && (all.length + 1) * (all[0]?.length ?? 0) < 320 * 1024) all.push(make());
  return all.join('');
}

const pem = (label: string, der: Buffer): string =>
  `-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`;

/** For tls.key and next.key. OpenSSL computes the public half of the first two. */
export const keys: Readonly<Record<string, () => string>> = {
  'a key of DSA': () =>
    pem(
      'PRIVATE KEY',
      sequence(
        integer(Buffer.from([0])),
        sequence(oid('1.2.840.10040.4.1'), sequence(integer(odd(1250)), integer(odd(32)), integer(odd(1249)))),
        octets(integer(odd(1248))),
      ),
    ),
  'a key of DH': () =>
    pem(
      'PRIVATE KEY',
      sequence(
        integer(Buffer.from([0])),
        sequence(oid('1.2.840.113549.1.3.1'), sequence(integer(odd(1250)), integer(odd(1249)))),
        octets(integer(odd(1248))),
      ),
    ),
  'a large key of RSA': () => {
    const half = integer(odd(2_400));
    const parts = [
      integer(Buffer.from([0])),
      integer(odd(4_800)),
      integer(Buffer.from([1, 0, 1])),
      integer(odd(4_799)),
    ];
    return pem('RSA PRIVATE KEY', sequence(...parts, half, half, half, half, half));
  },
};
