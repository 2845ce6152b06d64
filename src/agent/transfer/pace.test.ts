import { expect, test } from 'vitest';
import { paced } from './pace.ts';

async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i++) yield Buffer.alloc(1000, i);
}
const never = new AbortController().signal;

test('a stream takes as long as its rate demands, and loses nothing', async () => {
  const began = performance.now();
  const all = Buffer.concat(await Array.fromAsync(paced(pieces(20), 100_000, never)));
  expect(all).toEqual(Buffer.concat(await Array.fromAsync(pieces(20))));
  expect(performance.now() - began).toBeGreaterThan(140); // 200 ms, and the last wait may be left out
});

test('a task that is stopped ends in the middle of a wait', async () => {
  const stop = new AbortController();
  const reading = Array.fromAsync(paced(pieces(2), 1, stop.signal));
  setTimeout(() => stop.abort(), 20);
  await expect(reading).rejects.toMatchObject({ reason: 'TimedOut' });
});
