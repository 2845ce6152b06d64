import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sharing } from './sharing.ts';

test('the result equals the fresh value, and neither argument is changed', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (fresh, known) => {
      const before = JSON.stringify([fresh, known]);
      expect(sharing(fresh, known)).toEqual(fresh);
      expect(JSON.stringify(sharing(fresh, known))).toBe(JSON.stringify(fresh));
      expect(JSON.stringify([fresh, known])).toBe(before);
    }),
  );
});

test('equal parts are the same objects, at any depth', () => {
  const known = { name: 'a', spec: { ports: [{ port: 1 }, { port: 2 }], labels: { x: 'y' } } };
  const fresh = { name: 'b', spec: { ports: [{ port: 1 }, { port: 3 }], labels: { x: 'y' } } };
  const shared = sharing(fresh, known);
  expect(shared).toEqual(fresh);
  expect(shared.spec.labels).toBe(known.spec.labels);
  expect(shared.spec.ports[0]).toBe(known.spec.ports[0]);
  expect(sharing(structuredClone(known), known)).toBe(known);
});

test('a key whose value is undefined is not an absent key', () => {
  expect(Object.keys(sharing({ a: undefined }, { b: undefined }))).toEqual(['a']);
  expect(sharing([], {})).toEqual([]);
  expect(sharing({}, [])).toEqual({});
});

test('a list that has become shorter is not the known one', () => {
  expect(sharing([1], [1, 2])).toEqual([1]);
});
