import { describe, expect, test } from 'vitest';
import { cut, wrap } from './style.ts';
import { bytes, duration, percent, when } from './units.ts';

const MINUTE = 60_000;

test.each([
  [0, '0 B'],
  [1023, '1.0 KiB'],
  [1024, '1.0 KiB'],
  [25_000_000, '23.8 MiB'],
  [2 ** 31, '2.0 GiB'],
  [999 * 1024 ** 2, '999 MiB'],
  [1023 * 1024 ** 2, '1.0 GiB'],
])('%d bytes are %s', (amount, text) => expect(bytes(amount)).toBe(text));

test.each([
  [-5, '0s'],
  [999, '0s'],
  [59_999, '59s'],
  [90_000, '1m30s'],
  [60 * MINUTE, '1h'],
  [12 * MINUTE + 30_000, '12m'],
  [76 * 60 * MINUTE, '3d4h'],
  [400 * 24 * 60 * MINUTE, '400d'],
])('%d milliseconds are %s', (ms, text) => expect(duration(ms)).toBe(text));

test('a time is ahead, or has passed', () => {
  expect([when(90_000, 0), when(0, 90_000)]).toEqual(['in 1m30s', '1m30s ago']);
});

test('a share of nothing has no percentage', () => {
  expect([percent(1, 0), percent(1, 3), percent(1, 300)]).toEqual(['-', '33 %', '0.3 %']);
});

describe('text', () => {
  test('is wrapped at spaces, and a long word stays whole', () => {
    expect(wrap('aa bb  cc', 5)).toEqual(['aa bb', 'cc']);
    expect(wrap('a aaaaaaaaaa b', 5)).toEqual(['a', 'aaaaaaaaaa', 'b']);
  });
  test('is cut with a mark', () => expect([cut('abcdef', 4), cut('ab', 4)]).toEqual(['abc…', 'ab']));
});
