import { expect, test } from 'vitest';
import { fetching } from './fetching.ts';
import { Failure } from './terminal.ts';

/** Fails with these errors in turn, and then succeeds. */
const failing = (...errors: readonly Error[]) => {
  const left = [...errors];
  const work = async (): Promise<string> => {
    const error = left.shift();
    if (error) throw error;
    return 'done';
  };
  return { work, left };
};

test.each([
  'go: k8s.io/api@v0.36.3: Get "https://proxy/k8s.io/api": dial tcp 192.0.2.1:443: i/o timeout',
  'reading https://proxy/k8s.io/api/@v/v0.36.3.zip: 502 Bad Gateway: 502 Bad Gateway',
  'npm error code ECONNRESET',
])('a transient network error is retried: %s', async (message) => {
  expect(await fetching(failing(new Failure(message), new Failure(message)).work, 1)).toBe('done');
});

test('an error that persists is reported', async () => {
  const error = new Failure('dial tcp 192.0.2.1:443: connection refused');
  const { work, left } = failing(...Array<Error>(6).fill(error));
  await expect(fetching(work, 1)).rejects.toBe(error);
  expect(left).toHaveLength(2);
});

test.each([
  new Failure('main.go:500: undefined: x'),
  new Failure('k8s.io/api@v0.36.3: reading https://proxy: 404 Not Found'),
  new Error('i/o timeout'),
])('any other error is reported at once: %s', async (error) => {
  const { work, left } = failing(error, error);
  await expect(fetching(work, 1)).rejects.toBe(error);
  expect(left).toHaveLength(1);
});
