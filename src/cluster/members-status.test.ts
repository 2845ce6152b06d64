import { expect, test } from 'vitest';
import { coarsePercent, coarseSize } from './members-status.ts';

const MI = 1024 ** 2;

test.each([
  ['small ones are all the same', 1, undefined, 16],
  ['up to the next power of two', 17, undefined, 32],
  ['exactly one', 64, undefined, 64],
  ['it stays while it fits', 40, 64, 64],
  ['it stays when a defragmentation gives some back', 17, 64, 64],
  ['it moves when most of it is gone', 16, 64, 16],
  ['it moves when it does not fit any more', 65, 64, 128],
  ['the smallest stays', 0, 16, 16],
])('database size: %s', (_what, size, before, said) => {
  expect(coarseSize(size * MI, before === undefined ? undefined : before * MI)).toBe(said * MI);
});

test.each([
  [0, undefined, 0],
  [39.9, undefined, 30],
  [41, 30, 40],
  [39.9, 40, 40],
  [35, 40, 40],
  [34.9, 40, 30],
  [49.9, 40, 40],
  [100, 90, 100],
])('%d %% of the quota, after %s was said, is %i', (percent, before, said) => {
  expect(coarsePercent(percent, before)).toBe(said);
});
