import { expect, test } from 'vitest';
import { compareHashes } from './hashes.ts';

const row = (name: string, hash?: string, compactRevision = 1) => ({
  name,
  compactRevision,
  ...(hash !== undefined && { hash, revision: 5 }),
});

test.each([
  ['equal hashes are the same data', [row('a', '1'), row('b', '1')], 'same'],
  ['another hash is other data', [row('a', '1'), row('b', '2'), row('c', '1')], 'different'],
  ['another compact revision makes hashes differ anyway', [row('a', '1'), row('b', '2', 3)], 'unknown'],
  ['a member that did not respond is unknown', [row('a', '1'), row('b', '1'), row('c')], 'unknown'],
  ['the only member has the data', [row('a', '1')], 'same'],
  ['the only member did not respond', [row('a')], 'unknown'],
  ['one of two responded', [row('a', '1'), row('b')], 'unknown'],
])('%s', (_, rows, is) => expect(compareHashes(rows).is).toBe(is));

test('one member of several alone proves nothing', () =>
  expect(compareHashes([row('a', '1')], false).is).toBe('unknown'));
