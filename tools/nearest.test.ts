import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

const commands = ['demo', 'test', 'up', 'down', 'kubectl', 'helm', 'image', 'bench', 'fmt', 'lint', 'gen'];

test.each([
  ['tets', 'test'],
  ['kubctl', 'kubectl'],
  ['DEMO', 'demo'],
  ['integ', undefined],
  ['be', 'bench'],
  ['fmtt', 'fmt'],
  ['u', 'up'],
  ['nonsense', undefined],
  ['', undefined],
])('%j is closest to %s', (word, expected) => {
  expect(nearest(word, commands)).toBe(expected);
});
