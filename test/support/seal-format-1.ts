/** Encrypts as operators before format 2 did: their snapshots must stay readable. */
import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { SealKey } from '../../src/agent/format/seal-key.ts';

const SEGMENT = 64 * 1024;

export function sealFormat1(key: SealKey, bytes: Buffer, salt: Buffer = randomBytes(32)): Buffer {
  const header = Buffer.concat([Buffer.from('etcdseal'), Buffer.of(1), Buffer.from(key.id, 'hex'), salt]);
  const objectKey = Buffer.from(hkdfSync('sha256', key.bytes, salt, 'etcd-operator snapshot', 32));
  const count = Math.max(1, Math.ceil(bytes.length / SEGMENT));
  const segments = Array.from({ length: count }, (_, n) => {
    const nonce = Buffer.alloc(12);
    nonce.writeUIntBE(n, 5, 6);
    nonce[11] = Number(n === count - 1);
    const cipher = createCipheriv('aes-256-gcm', objectKey, nonce).setAAD(header);
    const sealed = cipher.update(bytes.subarray(n * SEGMENT, (n + 1) * SEGMENT));
    return Buffer.concat([sealed, cipher.final(), cipher.getAuthTag()]);
  });
  return Buffer.concat([header, ...segments]);
}
