/** Reads whose failure is a value. */
import { afterEach, expect, test, vi } from 'vitest';
import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { secrets } from './resources.ts';
import { tryGet } from './try-get.ts';

const ref = { namespace: 'ns', name: 'mine' };
const failing = (error: Error): Pick<Client, 'get'> => ({ get: () => Promise.reject(error) });
const answers = (code: number, reason: string, message: string) =>
  failing(new ApiError('GET', code, { reason, message }));
/** Like the real client: it ends only with its signal. */
const hanging: Pick<Client, 'get'> = {
  get: (_resource, _ref, signal) =>
    new Promise((_, reject) => {
      const end = (): void => reject(new ApiError('GET', 0, { reason: 'Aborted', message: 'over' }));
      signal?.addEventListener('abort', end);
    }),
};

afterEach(() => {
  vi.useRealTimers();
});

test.each([
  [
    'the status code and the message of the API server',
    answers(403, 'Forbidden', 'secrets "mine" is forbidden'),
    '403 secrets "mine" is forbidden',
  ],
  ['no longer a message than fits into a condition', answers(500, 'X', 'x'.repeat(1_000)), `500 ${'x'.repeat(300)}`],
  [
    'nothing of a response that could not be parsed: it may be a Secret',
    answers(0, 'Garbled', 'Unexpected token, "hunter2" is not valid JSON'),
    'no response (Garbled)',
  ],
])('a failed read has %s', async (_what, client, message) => {
  expect(await tryGet(client, secrets, ref)).toEqual({ ok: false, message });
});

test('an object that exists, and one that does not, is a successful read', async () => {
  const object = { apiVersion: 'v1', kind: 'Secret', metadata: ref };
  const get = <T>() => Promise.resolve(object as T);
  expect(await tryGet({ get }, secrets, ref)).toEqual({ ok: true, object });
  expect(await tryGet({ get: () => Promise.resolve(undefined) }, secrets, ref)).toEqual({
    ok: true,
    object: undefined,
  });
});

test('a read without a response is aborted after 5 s', async () => {
  vi.useFakeTimers();
  const reading = tryGet(hanging, secrets, ref);
  await vi.advanceTimersByTimeAsync(4_999);
  expect(await Promise.race([reading, Promise.resolve('reads')])).toBe('reads');
  await vi.advanceTimersByTimeAsync(1);
  expect(await reading).toEqual({ ok: false, message: 'no response within 5 s' });
});

test('a reconcile that has ended, and a bug, reject instead of reporting about the object', async () => {
  const over = new AbortController();
  const reading = tryGet(hanging, secrets, ref, over.signal);
  over.abort();
  await expect(reading).rejects.toThrow('over');
  await expect(tryGet(failing(new TypeError('a bug')), secrets, ref)).rejects.toThrow('a bug');
});
