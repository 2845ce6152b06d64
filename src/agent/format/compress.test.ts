import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { compress, decompress } from './compress.ts';

async function* pieces(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  yield* parts;
}
const all = async (stream: AsyncIterable<Uint8Array>): Promise<Buffer> => Buffer.concat(await Array.fromAsync(stream));
const PAGE = Buffer.from('a page of a database, '.repeat(2000));
const STORED = zstdCompressSync(PAGE);

test('what was compressed comes back, however it is cut, and the zstd tool could read it', async () => {
  const check = async (parts: readonly Uint8Array[]): Promise<void> => {
    const stored = await all(compress(pieces(...parts)));
    expect(
      (await all(decompress(pieces(stored.subarray(0, 9), stored.subarray(9))))).equals(Buffer.concat(parts)),
    ).toBe(true);
    expect(zstdDecompressSync(stored).equals(Buffer.concat(parts))).toBe(true);
  };
  await fc.assert(fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 5000 })), check), { numRuns: 50 });
});

test('the same pages again take little', async () => {
  const stored = await all(compress(pieces(...Array.from({ length: 100 }, () => PAGE))));
  expect(stored.length).toBeLessThan(PAGE.length);
});

test.each([
  ['cut off', STORED.subarray(0, STORED.length - 1)],
  ['empty', Buffer.alloc(0)],
  ['something else', PAGE],
])('one that is %s is damaged', async (_how, stored) => {
  await expect(all(decompress(pieces(stored)))).rejects.toMatchObject({ reason: 'SnapshotDamaged' });
});

test('one flipped bit in whatever place gives nothing else than what was compressed', async () => {
  const stored = await all(compress(pieces(PAGE)));
  let noticed = 0;
  for (let at = 0; at < stored.length; at++) {
    const flipped = Buffer.from(stored);
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    // A few bits of the frame's header mean nothing: with them, the bytes come back as they were.
    const read = await all(decompress(pieces(flipped))).catch((error: unknown) => error);
    if (Buffer.isBuffer(read)) expect(read.equals(PAGE), `byte ${at}`).toBe(true);
    else {
      expect(read, `byte ${at}`).toMatchObject({ reason: 'SnapshotDamaged' });
      noticed++;
    }
  }
  expect(noticed).toBeGreaterThan(stored.length - 5);
});

test('an error of the source is the error of the reader', async () => {
  async function* broken(): AsyncGenerator<Uint8Array, void, undefined> {
    yield STORED.subarray(0, 20);
    throw new AgentFailure('StreamBroken', 'gone');
  }
  await expect(all(compress(broken()))).rejects.toMatchObject({ reason: 'StreamBroken' });
  await expect(all(decompress(broken()))).rejects.toMatchObject({ reason: 'StreamBroken' });
});

test('a reader that stops lets the source go', async () => {
  const ended = Promise.withResolvers<void>();
  async function* endless(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (let i = 0; ; i++) yield Buffer.from(`${Math.sin(i)}`.repeat(1000));
    } finally {
      ended.resolve();
    }
  }
  for await (const _ of compress(endless())) break;
  await ended.promise;
});
