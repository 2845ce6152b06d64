/** The page of labels and annotations has every key of ours, and no other. */
import { expect, test } from 'vitest';
import { inlineCodeOf, read } from './pages.ts';

const PAGE = 'docs/labels-and-annotations.md';
const KEY = /^(?=.*[a-z])[a-z][a-z-]*$/;

test('every label, annotation and finalizer of src/api/names.ts is explained, and no other', () => {
  const keys = [...read('src/api/names.ts').matchAll(/\$\{GROUP\}\/([a-z-]+)`/g)].map(([, key = '']) => key);
  expect(keys.length).toBeGreaterThan(20);
  const rows = read(PAGE)
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const explained = rows.flatMap((row) => inlineCodeOf(row).filter((code) => KEY.test(code)));
  const values = ['voter', 'cluster'];
  expect(keys.filter((key) => !explained.includes(key))).toEqual([]);
  expect(explained.filter((key) => !keys.includes(key) && !values.includes(key))).toEqual([]);
});
