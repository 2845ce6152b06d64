import { expect, test } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { Refusal } from './error-info.ts';
import { wholeBody } from './resumable-download.ts';

const never = new AbortController().signal;
const WHOLE = Buffer.from('0123456789');

/** From this byte on, so many of them, and then this end. */
async function* part(from: number, count: number, end?: Error): AsyncGenerator<Uint8Array> {
  for (const byte of WHOLE.subarray(from, from + count)) yield Buffer.from([byte]);
  if (end !== undefined) throw end;
}

const text = async (body: AsyncIterable<Uint8Array>): Promise<string> =>
  Buffer.concat(await Array.fromAsync(body)).toString();

test('it goes on where it broke, as often as it breaks, also when an answer just ends', async () => {
  const asked: number[] = [];
  const read = async (from: number) => {
    asked.push(from);
    return part(from, 3, from === 4 ? undefined : new Error('aborted'));
  };
  expect(await text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, never))).toBe('0123456789');
  expect(asked).toEqual([4, 7]);
});

test('an end that breaks after the last byte is an end', async () => {
  const read = () => Promise.reject(new Error('not asked for'));
  expect(await text(wholeBody(part(0, 10, new Error('aborted')), WHOLE.length, read, never))).toBe('0123456789');
});

test('what is refused is not asked for again: the object was replaced, or is gone', async () => {
  const read = () => Promise.reject(new Refusal(412, 'conditionNotMet'));
  await expect(text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, never))).rejects.toThrow('412');
});

test('a service that never gets further is given up', async () => {
  let asked = 0;
  const read = async () => {
    asked += 1;
    return part(0, 0);
  };
  await expect(text(wholeBody(part(0, 0), WHOLE.length, read, never))).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(asked).toBeLessThan(30);
});

test('once stopped, nothing is asked for any more', async () => {
  const stop = new AbortController();
  stop.abort();
  const read = () => Promise.reject(new Error('not asked for'));
  const reading = text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, stop.signal));
  await expect(reading).rejects.toBeInstanceOf(AgentFailure);
  await expect(reading).rejects.toMatchObject({ reason: 'TimedOut' });
});
