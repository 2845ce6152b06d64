import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errnoSentence } from './errno.ts';

const refused = (code: string, more: object = {}): Error => Object.assign(new Error(code), { code, ...more });

test.each([
  ['ENOSPC', { path: '/here' }, 'no space is left on the disk for /here: free some, then run this again.'],
  ['ENOSPC', {}, 'no space is left on the disk: free some, then run this again.'],
  ['ENOSPC', { path: '/from', dest: '/to' }, 'no space is left on the disk for /to: free some, then run this again.'],
  ['EDQUOT', {}, 'the disk quota of this user is used up: free some space, then run this again.'],
  ['EROFS', { path: '/here' }, '/here is read-only, and this has to write there.'],
  ['EACCES', { path: '/here' }, 'this user has no permission for /here: run this as its owner, or as root.'],
  ['EPERM', { path: '/here' }, 'this user has no permission for /here: run this as its owner, or as root.'],
])('%s with %j is one sentence', (code, more, sentence) => {
  expect(errnoSentence(refused(code, more))).toBe(sentence);
});

test('another error is a bug and keeps its stack', () => {
  expect(errnoSentence(new Error('no'))).toBeUndefined();
  expect(errnoSentence('no')).toBeUndefined();
  let missing: unknown;
  try {
    readFileSync('/no/such/file');
  } catch (error) {
    missing = error;
  }
  expect(errnoSentence(missing)).toBeUndefined();
});
