import { expect, test } from 'vitest';
import { releaseIdleMemory } from './memory.ts';

test('V8 optimizes for size while the event loop is idle, and for speed in a burst', async () => {
  const over = new AbortController();
  const busy = [0.01, 0.9, 0.5, 0.1];
  const flags: string[] = [];
  const after = (_ms: number, call: () => void) => {
    if (busy.length === 1) over.abort();
    queueMicrotask(call);
    return () => undefined;
  };
  const clock = { now: () => 0, monotonic: () => 0, random: () => 0, after };
  await releaseIdleMemory(
    clock,
    over.signal,
    () => busy.shift() ?? 0,
    (flag) => void flags.push(flag),
  );
  expect(flags.slice(1)).toEqual([
    '--optimize-for-size',
    '--optimize-for-size',
    '--no-optimize-for-size',
    '--no-optimize-for-size',
    '--optimize-for-size',
  ]);
});
