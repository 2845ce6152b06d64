import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { Refusal } from './error-info.ts';
import { wholeBody } from './resumable-download.ts';

const never = new AbortController().signal;
const WHOLE = Buffer.from('0123456789');

/** From this byte on, `count` bytes, and then this error or the end. */
async function* part(from: number, count: number, end?: Error): AsyncGenerator<Uint8Array> {
  for (const byte of WHOLE.subarray(from, from + count)) yield Buffer.from([byte]);
  if (end !== undefined) throw end;
}

const text = async (body: AsyncIterable<Uint8Array>): Promise<string> =>
  Buffer.concat(await Array.fromAsync(body)).toString();

test('a download resumes where it broke, as often as it breaks, also when a response just ends', async () => {
  const asked: number[] = [];
  const read = async (from: number) => {
    asked.push(from);
    return part(from, 3, from === 4 ? undefined : new Error('aborted'));
  };
  expect(await text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, never))).toBe('0123456789');
  expect(asked).toEqual([4, 7]);
});

test('an error after the last byte is a complete download', async () => {
  const read = () => Promise.reject(new Error('unexpected request'));
  expect(await text(wholeBody(part(0, 10, new Error('aborted')), WHOLE.length, read, never))).toBe('0123456789');
});

test('a refused request is not repeated: the object was replaced, or deleted', async () => {
  const read = () => Promise.reject(new Refusal(412, 'conditionNotMet'));
  await expect(text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, never))).rejects.toThrow('412');
});

test('a service that makes no progress is not retried for ever', async () => {
  let asked = 0;
  const read = async () => {
    asked += 1;
    return part(0, 0);
  };
  await expect(text(wholeBody(part(0, 0), WHOLE.length, read, never))).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(asked).toBeLessThan(30);
});

test('a proxy that cuts every connection after one byte only makes the download slow', async () => {
  const long = Buffer.alloc(100, 'x');
  const read = async (from: number) =>
    (async function* () {
      yield long.subarray(from, from + 1);
      throw new Error('aborted');
    })();
  expect(await text(wholeBody(await read(0), long.length, read, never))).toBe(long.toString());
});

test.each(['that is ended by the signal of its attempt', 'of a library that ignores the signal'])(
  'a service that accepts a request and never responds is reported, and not waited for: a request %s',
  async (how) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    try {
      const read = (_from: number, signal: AbortSignal) =>
        new Promise<never>((_, reject) => {
          if (how.startsWith('that')) signal.addEventListener('abort', () => reject(new Error('aborted')));
        });
      const outcome = text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, never)).catch(
        (error: unknown) => error,
      );
      const limit = (async () => {
        for (let seconds = 0; seconds < 300; seconds++) {
          await vi.advanceTimersByTimeAsync(1_000);
          await sleep(10); // the pauses between attempts are real
        }
        return 'still waiting after five minutes';
      })();
      expect(await Promise.race([outcome, limit])).toMatchObject({ code: 'ETIMEDOUT' });
    } finally {
      vi.useRealTimers();
    }
  },
);

test('after an abort no request is made', async () => {
  const stop = new AbortController();
  stop.abort();
  const read = () => Promise.reject(new Error('unexpected request'));
  const reading = text(wholeBody(part(0, 4, new Error('aborted')), WHOLE.length, read, stop.signal));
  await expect(reading).rejects.toBeInstanceOf(AgentFailure);
  await expect(reading).rejects.toMatchObject({ reason: 'TimedOut' });
});
