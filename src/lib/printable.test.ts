import { expect, test } from 'vitest';
import { printable, shown } from './printable.ts';

test.each([
  ['a\u001b[2Jb', 'a [2Jb'],
  ['one\r\ntwo\u2028three', 'one two three'],
  ['left\u202eright', 'left right'],
  [' plain text, ünïcode… ', 'plain text, ünïcode…'],
])('control characters become spaces: %j', (text, expected) => {
  expect(printable(text)).toBe(expected);
});

test('a text is cut, whatever it consists of, and a short one is not', () => {
  expect([shown('abcdef', 4), shown('abcd', 4), shown(`${'\n'.repeat(1e6)}x`, 4)]).toEqual(['abc…', 'abcd', '']);
});
