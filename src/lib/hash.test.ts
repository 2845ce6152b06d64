import fc from 'fast-check';
import { expect, test } from 'vitest';
import { counterOf, hash32, shortName } from './hash.ts';

test('the same uid and counter always give the same name, in every release', () => {
  expect(shortName('7b4c2a2e-0000-4000-8000-000000000001', 1)).toMatchInlineSnapshot(`"zx2dg"`);
  expect(shortName('7b4c2a2e-0000-4000-8000-000000000001', 2)).toMatchInlineSnapshot(`"22f9w"`);
});

test('a name has five characters that Kubernetes accepts anywhere in a name', () => {
  fc.assert(fc.property(fc.uuid(), fc.nat(1e6), (uid, n) => /^[a-z0-9]{5}$/.test(shortName(uid, n))));
});

test('two counters of one cluster never share a name', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.nat(1e6), fc.nat(1e6), (uid, a, b) => a === b || shortName(uid, a) !== shortName(uid, b)),
  );
});

test('similar texts have different hashes', () => {
  expect(new Set(Array.from({ length: 1000 }, (_, i) => hash32(`cluster-${i}`))).size).toBe(1000);
});

test('the counter can be derived from a name', () => {
  fc.assert(fc.property(fc.uuid(), fc.nat(14_348_906), (uid, n) => counterOf(uid, shortName(uid, n)) === n));
  expect(['', 'zx2d', 'zx2dgg', 'zx2da', 'ZX2DG'].map((name) => counterOf('seed', name))).toEqual(
    Array(5).fill(undefined),
  );
});
