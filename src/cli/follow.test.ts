import { expect, test } from 'vitest';
import { follow, INTERRUPTED, type Progress } from './follow.ts';

function seen(...progress: readonly (Progress | Error)[]) {
  const notes: string[] = [];
  const stop = new AbortController();
  let at = 0;
  const look = (): Promise<Progress> => {
    const next = progress[at++];
    if (next === undefined) stop.abort();
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next ?? { line: '' });
  };
  const ports = { note: (text: string) => void notes.push(text), signal: stop.signal };
  return { notes, code: follow(ports, look, 'see status', 1) };
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
