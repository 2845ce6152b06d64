import { expect, test } from 'vitest';
import { mergePatch, missingIn, sameJson } from './merge-patch.ts';

test.each([
  ['nothing changed', { a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 }, undefined],
  ['undefined is the same as absent', { a: 1, b: undefined }, { a: 1 }, undefined],
  ['a field is added', {}, { a: 1 }, { a: 1 }],
  ['a field is added to an absent document', undefined, { a: 1 }, { a: 1 }],
  ['a field is removed', { a: 1, b: 2 }, { b: 2 }, { a: null }],
  ['only the changed leaf is in the patch', { a: { x: 1, y: 2 } }, { a: { x: 1, y: 3 } }, { a: { y: 3 } }],
  ['lists are replaced whole', { a: [1, 2] }, { a: [1] }, { a: [1] }],
  ['an object replaces a list', { a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
])('%s', (_name, before, after, patch) => {
  expect(mergePatch(before, after)).toEqual(patch);
});

test('null, lists and objects are never taken for one another', () => {
  expect(sameJson(null, {})).toBe(false);
  expect(sameJson([], {})).toBe(false);
  expect(sameJson([undefined], [])).toBe(false);
});

test('a list that becomes an object is replaced, and so is an object that becomes a list', () => {
  expect(mergePatch({ a: ['x'] }, { a: { b: 1 } })).toEqual({ a: { b: 1 } });
  expect(mergePatch({ a: { b: 1 } }, { a: ['x'] })).toEqual({ a: ['x'] });
  expect(mergePatch({ a: 'x' }, { a: { b: 1 } })).toEqual({ a: { b: 1 } });
  expect(sameJson(['x'], { 0: 'x', length: 1 })).toBe(false);
});

test.each<[string, unknown, Readonly<Record<string, unknown>>, readonly string[]]>([
  ['nothing of what is there', { a: 1, b: { c: [1, { d: 2 }] }, more: 3 }, { b: { c: [1, { d: 2 }] }, a: 1 }, []],
  ['a field', { a: 1 }, { a: 1, b: 2 }, ['b']],
  ['everything of an absent document', undefined, { a: 1 }, ['a']],
  ['a field that is otherwise', { a: 1 }, { a: 2 }, ['a']],
  ['a field of an object', { a: { x: 1 } }, { a: { x: 1, y: { z: 2 } } }, ['a.y']],
  ['a whole object', {}, { a: { x: 1 } }, ['a']],
  ['an empty object', {}, { a: {} }, ['a']],
  ['a field of an element of a list', { a: [{ x: 1 }] }, { a: [{ x: 1, y: 2 }] }, ['a']],
  ['an element of a list', { a: [1] }, { a: [1, 2] }, ['a']],
  ['nothing that was added to an element', { a: [{ x: 1, y: 2 }] }, { a: [{ x: 1 }] }, []],
  ['nothing that is undefined or null', {}, { a: undefined, b: null }, []],
])('a document lacks %s', (_what, whole, part, paths) => {
  expect(missingIn(whole, part)).toEqual(paths);
});
