import { expect, test } from 'vitest';
import { parseDuration } from './duration.ts';

test.each<[string, number | undefined]>([
  ['2160h', 2160 * 3_600_000],
  ['1h30m', 5_400_000],
  ['90s', 90_000],
  ['0s', 0],
  ['', undefined],
  ['90', undefined],
  ['1.5h', undefined],
  ['3d', undefined],
  ['-1h', undefined],
  ['1h'.repeat(32), 32 * 3_600_000],
  ['1h'.repeat(33), undefined],
])('%s', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});
