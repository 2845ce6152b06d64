import { expect, test } from 'vitest';
import { filterArguments } from './vitest.ts';

const files = ['src/lib/quantity.test.ts', 'src/cluster/decide.test.ts'];

test('a filter that is part of a path picks files', () => {
  expect(filterArguments('quantity', files)).toEqual(['quantity']);
  expect(filterArguments('src/cluster', files)).toEqual(['src/cluster']);
});

test('any other filter is part of a name, taken literally', () => {
  const [option, pattern = ''] = filterArguments('waits (and why)', files);
  expect(option).toBe('--testNamePattern');
  expect('the rule waits (and why) at first').toMatch(new RegExp(pattern));
});
