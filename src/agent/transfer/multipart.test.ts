import fc from 'fast-check';
import { expect, test } from 'vitest';
import { atOnce, BodyFailure, cut, partBytes, sendParts } from './multipart.ts';

const never = new AbortController().signal;
const MIB = 2 ** 20;

async function* chunks(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

test('the parts joined are the body, all of one size but the last, and only that one is marked as last', async () => {
  const body = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(body, fc.integer({ min: 1, max: 16 }), async (parts, size) => {
      const pieces = await Array.fromAsync(cut(chunks(parts), size, never));
      expect(Buffer.concat(pieces.map(({ bytes }) => bytes)).equals(Buffer.concat(parts))).toBe(true);
      expect(pieces.map(({ last }) => last)).toEqual(pieces.map((_, index) => index === pieces.length - 1));
      expect(pieces.map(({ number, offset }) => [number, offset])).toEqual(
        pieces.map((_, index) => [index + 1, index * size]),
      );
      for (const { bytes, last } of pieces) expect(last || bytes.length === size).toBe(true);
      const total = Buffer.concat(parts).length;
      expect(pieces).toHaveLength(Math.max(1, Math.ceil(total / size)));
    }),
  );
});

test('at most `width` parts are sent at once, and their buffers are reused', async () => {
  const [size, width] = [4, 3];
  const buffers = new Set<ArrayBufferLike>();
  let [now, most] = [0, 0];
  const all: Buffer[] = [];
  const body = chunks(Array.from({ length: 50 }, (_, n) => Buffer.alloc(3, n)));
  await sendParts(body, { size, width, signal: never }, async ({ bytes, number }) => {
    buffers.add(bytes.buffer);
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, number % 3));
    all[number] = Buffer.from(bytes);
    now -= 1;
  });
  expect(most).toBe(width);
  expect(Buffer.concat(all.slice(1))).toHaveLength(150);
  expect(buffers.size).toBeLessThanOrEqual(width + 1);
});

test('after a failure no part is started, those in flight are awaited, and the body is closed', async () => {
  let [started, ended, closed] = [0, 0, false];
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield Buffer.alloc(8);
    } finally {
      closed = true;
    }
  }
  const sending = sendParts(endless(), { size: 8, width: 3, signal: never }, async ({ number }, signal) => {
    started += 1;
    await new Promise((resolve) => setTimeout(resolve, 5));
    ended += 1;
    if (number === 2) throw new Error('refused');
    expect(number < 2 || signal.aborted).toBe(true);
  });
  await expect(sending).rejects.toThrow('refused');
  expect(started).toBe(ended);
  expect(started).toBeLessThan(6);
  expect(closed).toBe(true);
});

test('a failure of the body differs from one of the store, and the last part is not sent', async () => {
  const mine = new Error('mine');
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(10);
    throw mine;
  }
  const sent: boolean[] = [];
  const sending = sendParts(broken(), { size: 4, width: 2, signal: never }, async ({ last }) => void sent.push(last));
  await expect(sending).rejects.toBeInstanceOf(BodyFailure);
  await expect(sending).rejects.toMatchObject({ cause: mine });
  expect(sent).not.toContain(true);
});

test('ten thousand parts are enough for any database, and memory stays the same for those that exist', () => {
  expect(partBytes()).toBe(8 * MIB);
  expect(partBytes(8 * 1024 * MIB)).toBe(8 * MIB);
  for (const expected of [MIB, 70_000 * MIB, 80_000 * MIB, 1_000_000 * MIB]) {
    expect(Math.ceil(expected / partBytes(expected))).toBeLessThanOrEqual(10_000);
    expect(partBytes(expected) % (256 * 1024)).toBe(0); // Google wants it so
  }
  expect(atOnce(partBytes())).toBe(2);
  expect(atOnce(partBytes(1_000_000 * MIB))).toBe(1);
});
