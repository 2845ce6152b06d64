import { expect, test } from 'vitest';
import { hexId, idOf } from './ids.ts';

test.each([
  [0xabcn, '0000000000000abc'],
  [0xffff_ffff_ffff_ffffn, 'ffffffffffffffff'],
])('ids are sixteen hex digits: %s', (id, hex) => {
  expect([hexId(id), idOf(hex)]).toEqual([hex, id]);
});
