import { expect, test } from 'vitest';
import { parseQuantity, sameQuantity } from './quantity.ts';

const NANO = 1_000_000_000n;

test.each([
  ['0', 0n],
  [5, 5n * NANO],
  ['1Ki', 1024n * NANO],
  ['1Gi', 1024n ** 3n * NANO],
  ['1.5Gi', 1536n * 1024n ** 2n * NANO],
  ['2Ei', 2n * 1024n ** 6n * NANO],
  ['100m', NANO / 10n],
  ['1k', 1000n * NANO],
  ['1e3', 1000n * NANO],
  ['1e+0003', 1000n * NANO],
  ['1e999', 10n ** 1008n],
  ['5e-1', NANO / 2n],
  ['1e-999', 0n],
  ['12E', 12n * 10n ** 18n * NANO],
  ['.5', NANO / 2n],
  ['-1', -NANO],
  ['1n', 1n],
])('%s is parsed exactly', (text, nano) => {
  expect(parseQuantity(text)).toBe(nano);
});

test.each(['', '.', 'Gi', '1gi', '1 Gi', 'one', '1.2.3', '0x10', '1e1000', '1e-1000', '1'.repeat(65)])(
  '%j is not a quantity',
  (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  },
);

test.each([
  ['1Gi', '1024Mi', true],
  ['1Gi', 1073741824, true],
  ['1Gi', '1G', false],
  ['broken', 'broken', true],
  ['broken', '1Gi', false],
  ['1e5000000', '1e5000000', true],
  ['1e5000000', '1e5000001', false],
])('%s and %s are the same size: %s', (a, b, same) => {
  expect(sameQuantity(a, b)).toBe(same);
});

test('a quantity of the maximum length is read', () => {
  expect(parseQuantity('0'.repeat(63) + '1')).toBe(1_000_000_000n);
});
