import { createHash, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sealFormat1 } from '../../../test/support/seal-format-1.ts';
import { AgentFailure } from '../failure.ts';
import { HEADER_BYTES as FORMAT_1_BYTES, type Identity, isAtPath, SEGMENT_BYTES, seal, unseal } from './seal.ts';
import { type SealKey, sealKey } from './seal-key.ts';

const KEY = sealKey(Buffer.alloc(32, 7));
const OTHER = sealKey(Buffer.alloc(32, 8));
const IDENTITY: Identity = { path: 'ns/db/nightly.db.enc', uid: 'uid-1', takenAt: '2026-03-01T02:30:00.000Z' };
const HEADER_BYTES = FORMAT_1_BYTES + 2 + JSON.stringify(IDENTITY).length;
const ignore = (): void => undefined;
const SEALED_SEGMENT = SEGMENT_BYTES + 16;
const ID_BEGINS = 9;
const ID_ENDS = 17;

async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0;
  for (const size of sizes) {
    yield bytes.subarray(at, at + size);
    at = Math.min(bytes.length, at + size);
  }
  yield bytes.subarray(at);
}

const all = async (stream: AsyncIterable<Uint8Array>): Promise<Buffer> => Buffer.concat(await Array.fromAsync(stream));
const sealed = (bytes: Uint8Array, sizes: readonly number[] = []): Promise<Buffer> =>
  all(seal(KEY, IDENTITY, inPieces(bytes, sizes)));
const opened = (bytes: Uint8Array, key: SealKey = KEY, sizes: readonly number[] = []): Promise<Buffer> =>
  all(unseal([key], inPieces(bytes, sizes), ignore));

/** The reason of the failure, or that decryption succeeded. */
async function verdict(bytes: Uint8Array, key: SealKey = KEY): Promise<string> {
  try {
    await opened(bytes, key);
    return 'opened';
  } catch (error) {
    if (error instanceof AgentFailure) return error.reason;
    throw error;
  }
}

const content = (length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i += 32) createHash('sha256').update(`${i}`).digest().copy(bytes, i);
  return bytes;
};

/** Empty, around one segment, around several. */
const LENGTHS = [0, 1, 15, 16, 17, 100, SEGMENT_BYTES - 1, SEGMENT_BYTES, SEGMENT_BYTES + 1, 3 * SEGMENT_BYTES];
const lengths = fc.oneof(fc.constantFrom(...LENGTHS), fc.nat(3 * SEGMENT_BYTES));
const pieces = fc.array(fc.oneof(fc.nat(100), fc.nat(2 * SEGMENT_BYTES)), { maxLength: 20 });

test('encrypted data decrypts to the original, however either stream is chunked', async () => {
  const check = async (length: number, into: readonly number[], outOf: readonly number[]): Promise<void> => {
    const bytes = content(length);
    const stored = await sealed(bytes, into);
    expect((await opened(stored, KEY, outOf)).equals(bytes)).toBe(true);
  };
  await fc.assert(fc.asyncProperty(lengths, pieces, pieces, check), { numRuns: 60 });
});

test('equal bytes are encrypted differently each time, and contain no plaintext', async () => {
  const bytes = content(1000);
  const [one, two] = [await sealed(bytes), await sealed(bytes)];
  expect(one.subarray(HEADER_BYTES).equals(two.subarray(HEADER_BYTES))).toBe(false);
  expect(one.includes(bytes.subarray(0, 16))).toBe(false);
  expect(one.includes(KEY.bytes)).toBe(false);
});

test('one flipped bit anywhere is detected, in the key id as another key and otherwise as damage', async () => {
  const stored = await sealed(content(2 * SEGMENT_BYTES + 100));
  const check = async (at: number, bit: number): Promise<void> => {
    const flipped = Buffer.from(stored);
    flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
    expect(await verdict(flipped)).toBe(at >= ID_BEGINS && at < ID_ENDS ? 'WrongKey' : 'SnapshotDamaged');
  };
  for (let at = 0; at < HEADER_BYTES; at++) await check(at, at % 8);
  await fc.assert(fc.asyncProperty(fc.nat(stored.length - 1), fc.nat(7), check), { numRuns: 60 });
});

test('truncation is detected at every segment border, in the header, and anywhere else', async () => {
  const stored = await sealed(content(3 * SEGMENT_BYTES));
  const borders = [0, 1, 2, 3].map((n) => HEADER_BYTES + n * SEALED_SEGMENT).filter((at) => at < stored.length);
  expect(borders).toHaveLength(3);
  for (const at of borders) expect(await verdict(stored.subarray(0, at))).toBe('SnapshotDamaged');
  for (let at = 0; at <= HEADER_BYTES; at++) expect(await verdict(stored.subarray(0, at))).toBe('SnapshotDamaged');
  const check = async (at: number): Promise<void> => {
    expect(await verdict(stored.subarray(0, at))).toBe('SnapshotDamaged');
  };
  await fc.assert(fc.asyncProperty(fc.nat(stored.length - 1), check), { numRuns: 40 });
});

test('reordered, repeated, missing, foreign and appended segments are detected', async () => {
  const stored = await sealed(content(3 * SEGMENT_BYTES));
  const other = await sealed(content(3 * SEGMENT_BYTES));
  const header = stored.subarray(0, HEADER_BYTES);
  const segment = (n: number, of = stored): Buffer =>
    of.subarray(HEADER_BYTES + n * SEALED_SEGMENT, HEADER_BYTES + (n + 1) * SEALED_SEGMENT);
  const made = {
    swapped: [header, segment(1), segment(0), segment(2)],
    repeated: [header, segment(0), segment(0), segment(1), segment(2)],
    'without its first': [header, segment(1), segment(2)],
    'without one': [header, segment(0), segment(2)],
    'the last first': [header, segment(2), segment(0), segment(1)],
    extended: [stored, segment(2)],
    'extended by a byte': [stored, Buffer.of(0)],
    'extended by an empty segment': [stored, randomBytes(16)],
    'mixed with another': [header, segment(0), segment(1, other), segment(2)],
    'under the header of another': [other.subarray(0, HEADER_BYTES), segment(0), segment(1), segment(2)],
  };
  for (const [what, parts] of Object.entries(made))
    expect([what, await verdict(Buffer.concat(parts))]).toEqual([what, 'SnapshotDamaged']);
});

test('no byte of a damaged segment is passed on', async () => {
  const bytes = content(2 * SEGMENT_BYTES);
  const stored = await sealed(bytes);
  stored[stored.length - 20] = (stored[stored.length - 20] ?? 0) ^ 1;
  const seen: Uint8Array[] = [];
  const read = async (): Promise<void> => {
    for await (const piece of unseal([KEY], inPieces(stored, []), ignore)) seen.push(piece);
  };
  await expect(read()).rejects.toThrow('segment 2, its last, fails authentication');
  expect(Buffer.concat(seen).equals(bytes.subarray(0, SEGMENT_BYTES))).toBe(true);
});

test('another key is reported as such, before anything else, and the source is closed', async () => {
  let open = true;
  async function* source(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield await sealed(content(100));
      throw new Error('read on');
    } finally {
      open = false;
    }
  }
  const message = `encrypted with the key ${KEY.id}, and the Secret has ${OTHER.id}`;
  await expect(all(unseal([OTHER], source(), ignore))).rejects.toThrow(message);
  expect(open).toBe(false);
  expect(await verdict(await sealed(content(100)), OTHER)).toBe('WrongKey');
});

test('unencrypted data is reported as damaged, not as another key', async () => {
  expect(await verdict(content(1000))).toBe('SnapshotDamaged');
  expect(await verdict(Buffer.alloc(0))).toBe('SnapshotDamaged');
});

test('a failing source fails the reader with its own error, in both directions', async () => {
  async function* broken(): AsyncGenerator<Uint8Array, void, undefined> {
    yield content(SEGMENT_BYTES * 2);
    throw new AgentFailure('StreamBroken', 'gone');
  }
  await expect(all(seal(KEY, IDENTITY, broken()))).rejects.toMatchObject({ reason: 'StreamBroken' });
});

/** Written by the operator that had format 1. */
const FORMAT_1 =
  'ZXRjZHNlYWwBcEiVyy5Y47IJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCT78GcvWkixeRhoduu3r4lJF80rQb/ZEVZywpKrIMUWzPN1E0qmU6J2lRTiwJ1pFKbI=';

test('a snapshot of format 1 is decrypted, and has no identity', async () => {
  const text = Buffer.from('a snapshot of an earlier operator');
  const stored = Buffer.from(FORMAT_1, 'base64');
  const seen: unknown[] = [];
  const read = all(unseal([KEY], inPieces(stored, [10]), (identity) => seen.push(identity)));
  expect((await read).equals(text)).toBe(true);
  expect(seen).toEqual([undefined]);
  expect(sealFormat1(KEY, text, Buffer.alloc(32, 9)).equals(stored)).toBe(true);
  for (const length of LENGTHS) expect(await opened(sealFormat1(KEY, content(length)))).toEqual(content(length));
});

test('the identity is checked before a byte is passed on, and cannot be changed, exchanged or left out', async () => {
  const stored = await sealed(content(100));
  const refuse = unseal([KEY], inPieces(stored, [1, 60]), (identity) => {
    expect(identity).toEqual(IDENTITY);
    throw new Error('another snapshot');
  });
  await expect(refuse.next()).rejects.toThrow('another snapshot');
  const at = stored.indexOf('uid-1');
  const changed = Buffer.from(stored);
  changed.write('uid-2', at);
  expect(await verdict(changed)).toBe('SnapshotDamaged');
  const as1 = Buffer.concat([stored.subarray(0, FORMAT_1_BYTES), stored.subarray(HEADER_BYTES)]);
  as1[8] = 1;
  expect(await verdict(as1)).toBe('SnapshotDamaged');
});

test('every key of the Secret decrypts', async () => {
  const stored = await sealed(content(100));
  expect((await all(unseal([OTHER, KEY], inPieces(stored, []), ignore))).equals(content(100))).toBe(true);
});

test.each([
  ['nightly.db', true],
  ['ns/db/nightly.db', true],
  ['copied/2026/ns/db/nightly.db', true],
  ['other/db/nightly.db', false],
  ['xns/db/nightly.db', false],
  ['ns/db/nightly.db.zst', false],
])('a snapshot of the path ns/db/nightly.db at the key %s', (key, fits) => {
  const path = key === 'nightly.db' ? 'nightly.db' : 'ns/db/nightly.db';
  expect(isAtPath(key, path)).toBe(fits);
});
