/** A random source of certificates that a seed determines: a script has the same certificates whenever it runs, to the byte. */
import { createECDH, createHash, createPrivateKey, type KeyObject } from 'node:crypto';
import { integer, sequence } from '../../../src/pki/der.ts';
import type { KeySource } from '../../../src/pki/issue.ts';

/** The order of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const CURVE = createECDH('prime256v1');

const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
const bytesOf = (n: bigint): Buffer => Buffer.from(n.toString(16).padStart(64, '0'), 'hex');
const hash = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};
const scalar = (...parts: readonly (string | Uint8Array)[]): bigint => (number(hash(...parts)) % (ORDER - 1n)) + 1n;

/** Its first half is the x coordinate. */
function pointOf(k: bigint): Buffer {
  CURVE.setPrivateKey(bytesOf(k));
  return CURVE.getPublicKey().subarray(1);
}

function inverse(k: bigint): bigint {
  let [a, b, x, y] = [k, ORDER, 1n, 0n];
  while (b > 0n) {
    const q = a / b;
    [a, b, x, y] = [b, a - q * b, y, x - q * y];
  }
  return ((x % ORDER) + ORDER) % ORDER;
}

/** Without the leading zeros that DER forbids. */
function minimal(n: bigint): Buffer {
  const digits = n.toString(16);
  return Buffer.from(digits.padStart(digits.length + (digits.length % 2), '0'), 'hex');
}

/** ECDSA whose nonce follows from the key and the content. */
function sign(content: Uint8Array, by: KeyObject): Buffer {
  const own = number(Buffer.from(by.export({ format: 'jwk' }).d ?? '', 'base64url'));
  const digest = hash(content);
  const k = scalar('nonce', bytesOf(own), digest);
  const r = number(pointOf(k).subarray(0, 32)) % ORDER;
  const s = (inverse(k) * (number(digest) + r * own)) % ORDER;
  return sequence(integer(minimal(r)), integer(minimal(s)));
}

export function seededKeys(seed: number): KeySource {
  let made = 0;
  return {
    key: () => {
      const own = scalar(`key ${seed} ${++made}`);
      const point = pointOf(own);
      const [d, x, y] = [bytesOf(own), point.subarray(0, 32), point.subarray(32)].map((b) => b.toString('base64url'));
      const jwk = { kty: 'EC', crv: 'P-256', d: d ?? '', x: x ?? '', y: y ?? '' };
      return Promise.resolve(createPrivateKey({ key: jwk, format: 'jwk' }));
    },
    serial: () => hash(`serial ${seed} ${++made}`).subarray(0, 16),
    sign,
  };
}
