import { expect, test } from 'vitest';
import { backoffMs, probeMs } from './backoff.ts';

const limits = { firstMs: 100, maxMs: 30_000 };

test.each([
  [0, 0, 50],
  [0, 1, 100],
  [1, 1, 200],
  [4, 0, 800],
  [20, 1, 30_000],
  [5000, 1, 30_000],
])('after %i failures and with the random number %d the delay is %i ms', (failures, random, ms) => {
  expect(backoffMs(failures, random, limits)).toBe(ms);
});

test.each([
  [-5_000, 100],
  [0, 100],
  [1_000, 250],
  [60_000, 15_000],
  [3_600_000, 30_000],
])('what started %i ms ago is polled again after %i ms', (elapsed, ms) => {
  expect(probeMs(elapsed, limits)).toBe(ms);
});
