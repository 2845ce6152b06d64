import { expect, test } from 'vitest';
import { present } from './present.ts';

test('a field that is undefined is absent, and any other value stays', () => {
  expect(Object.keys(present({ a: undefined, b: 0, c: '', d: false, e: null }))).toEqual(['b', 'c', 'd', 'e']);
});
