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

test('compressed data decompresses to the original, however it is chunked, and is standard zstd', async () => {
  const check = async (parts: readonly Uint8Array[]): Promise<void> => {
    const stored = await all(compress(pieces(...parts)));
    expect(
      (await all(decompress(pieces(stored.subarray(0, 9), stored.subarray(9))))).equals(Buffer.concat(parts)),
    ).toBe(true);
    expect(zstdDecompressSync(stored).equals(Buffer.concat(parts))).toBe(true);
  };
  await fc.assert(fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 5000 })), check), { numRuns: 50 });
});

test('repeated pages compress well', async () => {
  const stored = await all(compress(pieces(...Array.from({ length: 100 }, () => PAGE))));
  expect(stored.length).toBeLessThan(PAGE.length);
});

test.each([
  ['truncated', STORED.subarray(0, STORED.length - 1)],
  ['empty', Buffer.alloc(0)],
  ['something else', PAGE],
])('data that is %s is reported as damaged', async (_how, stored) => {
  await expect(all(decompress(pieces(stored)))).rejects.toMatchObject({ reason: 'SnapshotDamaged' });
});

test('one flipped bit anywhere never yields other data than the original', async () => {
  const stored = await all(compress(pieces(PAGE)));
  let noticed = 0;
  for (let at = 0; at < stored.length; at++) {
    const flipped = Buffer.from(stored);
    flipped[at] = (flipped[at] ?? 0) ^ 0x10;
    // A few bits of the frame's header are unused: with them flipped, the output is the original.
    const read = await all(decompress(pieces(flipped))).catch((error: unknown) => error);
    if (Buffer.isBuffer(read)) expect(read.equals(PAGE), `byte ${at}`).toBe(true);
    else {
      expect(read, `byte ${at}`).toMatchObject({ reason: 'SnapshotDamaged' });
      noticed++;
    }
  }
  expect(noticed).toBeGreaterThan(stored.length - 5);
});

test('the reader gets the error of the source', async () => {
  async function* broken(): AsyncGenerator<Uint8Array, void, undefined> {
    yield STORED.subarray(0, 20);
    throw new AgentFailure('StreamBroken', 'gone');
  }
  await expect(all(compress(broken()))).rejects.toMatchObject({ reason: 'StreamBroken' });
  await expect(all(decompress(broken()))).rejects.toMatchObject({ reason: 'StreamBroken' });
});

test('a reader that stops closes the source', async () => {
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
