import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../paths.ts';
import { DANGEROUS, dangerous } from './dangerous.ts';
import { mutants } from './list.ts';

test.each(mutants)('$file: $lets', ({ file, from, to }) => {
  const found = readFileSync(join(root, file), 'utf8').split(from).length - 1;
  expect(found, `the code that this fault is about has changed: say it anew in tools/mutants\n${from}`).toBe(1);
  expect(to).not.toBe(from);
});

test('every dangerous fault is one of the list', () => {
  expect(dangerous).toHaveLength(DANGEROUS.length);
});

test('every fault has a sentence of its own', () => {
  const said = mutants.map(({ file, lets }) => `${file}: ${lets}`);
  expect(said.filter((text, i) => said.indexOf(text) !== i)).toEqual([]);
});
