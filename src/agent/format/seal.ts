/**
 * Encryption of stored snapshots: AES-256-GCM in segments, so that a database of any size streams, and no byte is
 * passed on before it is authenticated.
 *
 *   header   magic, format, id of the key, salt; authenticated with every segment
 *   segment  up to 64 KiB encrypted, then its 16-byte tag; all but the last are full
 *
 * Each object has a key of its own, derived from the user's and the salt, so a nonce is never used twice. The nonce is
 * the segment's number and whether it is the last: a segment that is missing, reordered or appended fails
 * authentication.
 */
import { type CipherGCM, createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { MOUNTS } from '../../domain/agent-task.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { neededSecretFile } from '../secrets.ts';

const ALGORITHM = 'aes-256-gcm';
const MAGIC = Buffer.from('etcdseal');
const FORMAT = 1;
const KEY_BYTES = 32;
const ID_BYTES = 8;
const SALT_BYTES = 32;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
export const SEGMENT_BYTES = 64 * 1024;
export const HEADER_BYTES = MAGIC.length + 1 + ID_BYTES + SALT_BYTES;

export interface SealKey {
  readonly bytes: Buffer;
  /** Identifies the key without revealing anything about it. */
  readonly id: string;
}

/** From the value of a Secret: 32 raw bytes, or base64 or hexadecimal of them. */
export function sealKey(secret: Buffer): SealKey {
  const bytes = keyBytes(secret);
  const id = createHash('sha256').update('etcd-operator snapshot key id\0').update(bytes).digest('hex');
  return { bytes, id: id.slice(0, 2 * ID_BYTES) };
}

function keyBytes(secret: Buffer): Buffer {
  if (secret.length === KEY_BYTES) return Buffer.from(secret);
  const text = secret.toString('latin1').trim();
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return Buffer.from(text, 'base64');
  throw misconfigured(
    `the encryption key has ${secret.length} bytes and is neither 32 raw bytes nor 32 bytes as base64 or hexadecimal: put the output of "openssl rand -base64 32" into the Secret`,
  );
}

/** The key in the task's Secret. */
export const mountedSealKey = async (): Promise<SealKey> =>
  sealKey(await neededSecretFile(MOUNTS.encryption, 'key', 'the Secret with the encryption key'));

export async function* seal(
  key: SealKey,
  body: AsyncIterable<Uint8Array>,
  salt: Buffer = randomBytes(SALT_BYTES),
): AsyncGenerator<Uint8Array> {
  const header = Buffer.concat([MAGIC, Buffer.of(FORMAT), Buffer.from(key.id, 'hex'), salt]);
  const objectKey = keyOf(key, salt);
  yield header;
  let number = 0;
  for await (const { bytes, last } of cut(body, SEGMENT_BYTES)) {
    const cipher: CipherGCM = createCipheriv(ALGORITHM, objectKey, nonce(number++, last)).setAAD(header);
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
}

export async function* unseal(key: SealKey, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let sealed: { readonly header: Buffer; readonly objectKey: Buffer } | undefined;
  let number = 0;
  for await (const { bytes, last } of cut(body, SEGMENT_BYTES + TAG_BYTES, HEADER_BYTES)) {
    if (!sealed) {
      sealed = { header: bytes, objectKey: keyOf(key, saltOf(key, bytes)) };
      if (last) throw damaged('ends after its header');
      continue;
    }
    if (bytes.length < TAG_BYTES) throw damaged('ends in the middle of a segment');
    const end = bytes.length - TAG_BYTES;
    const decipher = createDecipheriv(ALGORITHM, sealed.objectKey, nonce(number++, last))
      .setAAD(sealed.header)
      .setAuthTag(bytes.subarray(end));
    const opened = decipher.update(bytes.subarray(0, end));
    try {
      decipher.final();
    } catch {
      throw damaged(`was changed: segment ${number}${last ? ', its last,' : ''} fails authentication`);
    }
    yield opened;
  }
}

/** The id of the key is checked first: with another key everything else would look like damage. */
function saltOf(key: SealKey, header: Buffer): Buffer {
  if (header.length < HEADER_BYTES || !header.subarray(0, MAGIC.length).equals(MAGIC))
    throw damaged('does not begin like an encrypted snapshot');
  const format = header[MAGIC.length];
  if (format !== FORMAT) throw damaged(`is encrypted in format ${format}, and this version reads format ${FORMAT}`);
  const id = header.subarray(MAGIC.length + 1, MAGIC.length + 1 + ID_BYTES).toString('hex');
  if (id !== key.id)
    throw new AgentFailure(
      'WrongKey',
      `the snapshot is encrypted with the key ${id}, and the given key is ${key.id}: set the Secret with the key that it was taken with`,
    );
  return header.subarray(HEADER_BYTES - SALT_BYTES);
}

const damaged = (how: string): AgentFailure =>
  new AgentFailure('SnapshotDamaged', `the stored snapshot ${how}: restore from another one`);

const keyOf = (key: SealKey, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', key.bytes, salt, 'etcd-operator snapshot', KEY_BYTES));

function nonce(number: number, last: boolean): Buffer {
  const bytes = Buffer.alloc(NONCE_BYTES);
  bytes.writeUIntBE(number, NONCE_BYTES - 7, 6);
  bytes[NONCE_BYTES - 1] = Number(last);
  return bytes;
}

/**
 * Chunks of one size, except perhaps the first, and the remainder as the last, which is empty only for an empty input.
 */
async function* cut(
  body: AsyncIterable<Uint8Array>,
  size: number,
  first = size,
): AsyncGenerator<{ readonly bytes: Buffer; readonly last: boolean }> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  let wanted = first;
  for await (const piece of body) {
    waiting.push(piece);
    length += piece.length;
    if (length <= wanted) continue;
    let all = Buffer.concat(waiting);
    for (; all.length > wanted; wanted = size) {
      yield { bytes: all.subarray(0, wanted), last: false };
      all = all.subarray(wanted);
    }
    waiting = [all];
    length = all.length;
  }
  yield { bytes: Buffer.concat(waiting), last: true };
}
