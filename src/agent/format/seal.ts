/**
 * Encryption of stored snapshots: AES-256-GCM in segments, so that a database of any size streams, and no byte is
 * passed on before it is authenticated.
 *
 *   header   magic, format, id of the key, salt; since format 2 also which snapshot it is (its path below the key of
 *            the destination, its uid, and when it was taken); authenticated with every segment
 *   segment  up to 64 KiB encrypted, then its 16-byte tag; all but the last are full
 *
 * Each object has a key of its own, derived from the user's and the salt, so a nonce is never used twice. The nonce is
 * the segment's number and whether it is the last: a segment that is missing, reordered or appended fails
 * authentication. An object of format 1 can be put in the place of another that has the same key: it is read, and no
 * longer written.
 */
import { type CipherGCM, createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { Check } from 'typebox/value';
import { AgentFailure } from '../failure.ts';
import { ID_BYTES, KEY_BYTES, type SealKey } from './seal-key.ts';

const ALGORITHM = 'aes-256-gcm';
const MAGIC = Buffer.from('etcdseal');
const FORMAT = 2;
const SALT_BYTES = 32;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
export const SEGMENT_BYTES = 64 * 1024;
/** Of format 1, and the beginning of that of format 2. */
export const HEADER_BYTES = MAGIC.length + 1 + ID_BYTES + SALT_BYTES;
const LENGTH_BYTES = 2;
const MAX_IDENTITY_BYTES = 4096;

const IdentitySchema = Type.Object({
  /** The object's key, without the key of the destination: a whole bucket or folder can be copied. */
  path: Type.String({ minLength: 1 }),
  uid: Type.String({ minLength: 1 }),
  takenAt: Type.String({ minLength: 1 }),
});
/** Which snapshot it is. */
export type Identity = Readonly<Static<typeof IdentitySchema>>;

/** Whether an object with this path may have this key. */
export const isAtPath = (key: string, path: string): boolean => key === path || key.endsWith(`/${path}`);

export async function* seal(
  key: SealKey,
  identity: Identity,
  body: AsyncIterable<Uint8Array>,
  salt: Buffer = randomBytes(SALT_BYTES),
): AsyncGenerator<Uint8Array> {
  const text = Buffer.from(JSON.stringify(identity));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(text.length);
  const header = Buffer.concat([MAGIC, Buffer.of(FORMAT), Buffer.from(key.id, 'hex'), salt, length, text]);
  const objectKey = keyOf(key, salt);
  yield header;
  let number = 0;
  for await (const { bytes, last } of cut(body, () => SEGMENT_BYTES)) {
    const cipher: CipherGCM = createCipheriv(ALGORITHM, objectKey, nonce(number++, last)).setAAD(header);
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
}

/** `check` gets the identity before any byte is passed on, and throws if it is the wrong snapshot; format 1 has none. */
export async function* unseal(
  keys: readonly SealKey[],
  body: AsyncIterable<Uint8Array>,
  check: (identity: Identity | undefined) => void,
): AsyncGenerator<Uint8Array> {
  let header = Buffer.alloc(0);
  let wanted = HEADER_BYTES;
  let sealed: { readonly header: Buffer; readonly objectKey: Buffer } | undefined;
  let number = 0;
  for await (const { bytes, last } of cut(body, () => wanted)) {
    if (!sealed) {
      header = Buffer.concat([header, bytes]);
      wanted = headerBytes(header) - header.length;
      if (last) throw damaged('ends in its header, or after it');
      if (wanted > 0) continue;
      sealed = { header, objectKey: keyOf(keyFor(keys, header), saltIn(header)) };
      check(identityIn(header));
      wanted = SEGMENT_BYTES + TAG_BYTES;
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

const formatIn = (header: Buffer): number => header[MAGIC.length] ?? 0;

/** How many bytes the header has, as far as its beginning says so. */
function headerBytes(begin: Buffer): number {
  if (begin.length < HEADER_BYTES || !begin.subarray(0, MAGIC.length).equals(MAGIC))
    throw damaged('does not begin like an encrypted snapshot');
  const format = formatIn(begin);
  if (format < 1 || format > FORMAT)
    throw damaged(`is encrypted in format ${format}, and this version reads formats up to ${FORMAT}`);
  if (format === 1) return HEADER_BYTES;
  if (begin.length < HEADER_BYTES + LENGTH_BYTES) return HEADER_BYTES + LENGTH_BYTES;
  const length = begin.readUInt16BE(HEADER_BYTES);
  if (length > MAX_IDENTITY_BYTES) throw damaged('has a header that is too long');
  return HEADER_BYTES + LENGTH_BYTES + length;
}

/** The id of the key is checked first: with another key everything else would look like damage. */
function keyFor(keys: readonly SealKey[], header: Buffer): SealKey {
  const id = header.subarray(MAGIC.length + 1, MAGIC.length + 1 + ID_BYTES).toString('hex');
  const key = keys.find((each) => each.id === id);
  if (key) return key;
  const given = keys.map((each) => each.id).join(', ');
  throw new AgentFailure(
    'WrongKey',
    `the snapshot is encrypted with the key ${id}, and the Secret has ${given}: set the Secret with the key that it was taken with, or add that key to this one as "key-previous"`,
  );
}

const saltIn = (header: Buffer): Buffer => header.subarray(HEADER_BYTES - SALT_BYTES, HEADER_BYTES);

function identityIn(header: Buffer): Identity | undefined {
  if (formatIn(header) === 1) return undefined;
  try {
    const identity: unknown = JSON.parse(header.toString('utf8', HEADER_BYTES + LENGTH_BYTES));
    if (Check(IdentitySchema, identity)) return identity;
  } catch {} // reported below
  throw damaged('was changed: its header cannot be read');
}

export const damaged = (how: string): AgentFailure =>
  new AgentFailure('SnapshotDamaged', `the stored snapshot ${how}: restore from another one`);

const keyOf = (key: SealKey, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', key.bytes, salt, 'etcd-operator snapshot', KEY_BYTES));

function nonce(number: number, last: boolean): Buffer {
  const bytes = Buffer.alloc(NONCE_BYTES);
  bytes.writeUIntBE(number, NONCE_BYTES - 7, 6);
  bytes[NONCE_BYTES - 1] = Number(last);
  return bytes;
}

/** Chunks of the size that is wanted next, and the remainder as the last, which is empty only for an empty input. */
async function* cut(
  body: AsyncIterable<Uint8Array>,
  wanted: () => number,
): AsyncGenerator<{ readonly bytes: Buffer; readonly last: boolean }> {
  let waiting: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    waiting.push(piece);
    length += piece.length;
    if (length <= wanted()) continue;
    let all = Buffer.concat(waiting);
    for (let size = wanted(); all.length > size; size = wanted()) {
      yield { bytes: all.subarray(0, size), last: false };
      all = all.subarray(size);
    }
    waiting = [all];
    length = all.length;
  }
  yield { bytes: Buffer.concat(waiting), last: true };
}
