import { expect, test } from 'vitest';
import { seconds } from './terminal.ts';

test.each([
  [0, '0.0 s'],
  [1_234, '1.2 s'],
  [59_940, '59.9 s'],
  [59_960, '1 min 0 s'],
  [119_700, '2 min 0 s'],
  [1_500_000, '25 min 0 s'],
])('%i ms reads as %s', (ms, text) => {
  expect(seconds(ms)).toBe(text);
});
