/** What a user can do when keys fill the database. */
import { expect, test } from 'vitest';
import { growthRemedy, proposedQuota } from './space.ts';

const GI = 2 ** 30;
const MI = 2 ** 20;

test.each([
  [1.9 * GI, 2 * GI, 4 * GI],
  [0.5 * GI, 2 * GI, 3 * GI],
  [95 * MI, 100 * MI, 192 * MI],
  [6 * GI, 7 * GI, 8 * GI],
  [8 * GI, 8 * GI, undefined],
  [9 * GI, 16 * GI, undefined],
])('keys of %d bytes in a quota of %d: %d', (inUse, quota, expected) => {
  expect(proposedQuota(inUse, quota)).toBe(expected);
});

test('a volume that is too small for the quota is named with it', () => {
  expect(growthRemedy(1.9 * GI, 2 * GI, 3 * GI)).toBe(
    'delete keys, or raise options.quotaBackendBytes to 4294967296 (4Gi), and storage.size to at least 4736Mi',
  );
  expect(growthRemedy(1.9 * GI, 2 * GI, 10 * GI)).toBe(
    'delete keys, or raise options.quotaBackendBytes to 4294967296 (4Gi)',
  );
  expect(growthRemedy(8 * GI, 8 * GI, 10 * GI)).toContain('8192.0 MiB is as much as etcd is made for');
});
