import { expect, test } from 'vitest';
import { blockMs, LONGEST_MS, MIB } from '../../test/support/builders/hostile.ts';
import { keyOf } from './agent-task.ts';

const at = (subPath: string) => keyOf({ pvc: { claimName: 'c', subPath } });

test.each([
  ['', ''],
  ['a', 'a'],
  ['a/', 'a'],
  ['a/b//', 'a/b'],
  ['/a', '/a'],
  ['//', ''],
])('the key %j is %j', (stated, key) => {
  expect(at(stated)).toBe(key);
});

test('many slashes that are not trailing are handled in linear time', () => {
  expect(blockMs(() => at(`${'/'.repeat(MIB / 16)}x`))).toBeLessThan(LONGEST_MS);
});
