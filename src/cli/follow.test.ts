import { expect, test } from 'vitest';
import { ApiError } from '../kube/errors.ts';
import type { Progress } from './assess/progress.ts';
import { UserError } from './context.ts';
import { follow, INTERRUPTED, timeoutMs } from './follow.ts';

function seen(...progress: readonly (Progress | Error)[]) {
  return seenUntil(Number.POSITIVE_INFINITY, ...progress);
}

function seenUntil(limitMs: number, ...progress: readonly (Progress | Error)[]) {
  const notes: string[] = [];
  const stop = new AbortController();
  let at = 0;
  const look = (): Promise<Progress> => {
    const next = progress[at++];
    if (next === undefined) stop.abort();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next ?? { line: '' });
  };
  const ports = { note: (text: string) => void notes.push(text), signal: stop.signal };
  return { notes, code: follow(ports, look, { later: 'see status', everyMs: 1, timeoutMs: limitMs }) };
}

test('what is waited for is printed when it changes, until it has ended', async () => {
  const { notes, code } = seen({ line: 'a' }, { line: 'a' }, new Error('refused'), { line: 'b', ended: 'good' });
  expect(await code).toBe(0);
  expect(notes).toEqual(['a', 'refused', 'b']);
});
test('a failure is exit code 1', async () => expect(await seen({ line: 'x', ended: 'bad' }).code).toBe(1));
test('Ctrl-C ends the waiting, and says how to see what becomes of it', async () => {
  const { notes, code } = seen({ line: 'a' });
  expect(await code).toBe(INTERRUPTED);
  expect(notes.at(-1)).toContain('the operator goes on: see status');
});
test('--timeout ends the waiting with exit code 1, and names how to see what becomes of it', async () => {
  const { notes, code } = seenUntil(0, { line: 'a' }, { line: 'b' });
  expect(await code).toBe(1);
  expect(notes).toEqual(['a', expect.stringContaining('the operator goes on: see status')]);
});
test('--timeout is a duration', () => {
  expect(timeoutMs({})).toBe(Number.POSITIVE_INFINITY);
  expect(timeoutMs({ timeout: '2m' })).toBe(120_000);
  for (const timeout of ['', '0s', '10', 'soon']) expect(() => timeoutMs({ timeout })).toThrow('such as 10m');
});
test('without the object, or the permission to read it, there is nothing to wait for', async () => {
  await expect(seen(new UserError('there is no EtcdCluster db')).code).rejects.toThrow('there is no EtcdCluster');
  await expect(seen(new ApiError('GET', 403, { message: 'no' })).code).rejects.toThrow();
  const { notes, code } = seen(new ApiError('GET', 503, { message: 'later' }), { line: 'b', ended: 'good' });
  expect([await code, notes]).toEqual([0, ['later', 'b']]);
});
