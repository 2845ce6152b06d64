import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { type SpoolOptions, spooled } from './spool.ts';

const MIB = 2 ** 20;
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'etcd-operator-spool-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Chunks of a MiB with their number in them, and what has become of the source. */
function source(chunks: number, failure?: Error) {
  const state = { sent: 0, ended: false };
  async function* stream(): AsyncGenerator<Uint8Array> {
    try {
      for (; state.sent < chunks; ) yield Buffer.alloc(MIB, state.sent++ % 251);
      if (failure) throw failure;
    } finally {
      state.ended = true;
    }
  }
  return { state, stream: stream() };
}
const options = (more: Partial<SpoolOptions> = {}): SpoolOptions => ({
  folder,
  maxBytes: 100 * MIB,
  giveUp: async () => undefined,
  ...more,
});
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await sleep(5);
};
/** The number in each chunk of a MiB. */
const numbers = (parts: readonly Uint8Array[]): readonly number[] => {
  const all = Buffer.concat(parts);
  return Array.from({ length: all.length / MIB }, (_, i) => all[i * MIB] ?? -1);
};
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i % 251);

test('a stream is read to its end while its consumer has taken one chunk, and nothing is lost or out of order', async () => {
  const { state, stream } = source(60);
  const body = spooled(stream, options());
  const parts = [(await body.next()).value as Uint8Array];
  await until(() => state.ended);
  for await (const part of body) parts.push(part);
  expect(numbers(parts)).toEqual(upTo(60));
  expect(readdirSync(folder)).toEqual([]);
});

test('a consumer that is as fast as the stream gets everything from memory', async () => {
  const { stream } = source(30);
  expect(numbers(await Array.fromAsync(spooled(stream, options({ folder: join(folder, 'missing') }))))).toEqual(
    upTo(30),
  );
});

test('the file is used again when the consumer has caught up, and is never larger than allowed', async () => {
  const { state, stream } = source(64);
  const parts: Uint8Array[] = [];
  let taken = 0;
  for await (const part of spooled(stream, options({ maxBytes: 12 * MIB }))) {
    expect(state.sent - taken / MIB).toBeLessThan(24);
    parts.push(part);
    taken += part.length;
    if (parts.length % 8 === 0) await sleep(10);
  }
  expect(numbers(parts)).toEqual(upTo(64));
});

test('a stream that is held up without room is given up for a reason, and ends at once', async () => {
  const { state, stream } = source(60);
  const giveUp = async () => new AgentFailure('SourceGrowing', 'it grows');
  const body = spooled(stream, options({ maxBytes: 4 * MIB, giveUp }));
  await body.next();
  await until(() => state.ended);
  expect(state.sent).toBeLessThan(20);
  await expect(Array.fromAsync(body)).rejects.toThrow('it grows');
});

test('a failure of the stream reaches the consumer', async () => {
  const { stream } = source(3, new Error('broken'));
  await expect(Array.fromAsync(spooled(stream, options()))).rejects.toThrow('broken');
});

test('a consumer that stops ends the stream', async () => {
  const { state, stream } = source(1_000_000);
  for await (const _part of spooled(stream, options({ maxBytes: 4 * MIB }))) break;
  await until(() => state.ended);
  expect(state.sent).toBeLessThan(100);
});
