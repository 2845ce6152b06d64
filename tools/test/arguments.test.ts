import { expect, test } from 'vitest';
import { UsageFailure } from '../terminal.ts';
import { parseArguments, type TestRequest } from './arguments.ts';

test.each<[string, string[], TestRequest]>([
  ['nothing means everything', [], { all: false }],
  ['a level', ['unit'], { level: 'unit', all: false }],
  ['a level and a filter', ['e2e', 'scale up'], { level: 'e2e', filter: 'scale up', all: false }],
  ['--all, wherever it stands', ['--all', 'e2e'], { level: 'e2e', all: true }],
])('%s', (_, args, expected) => {
  expect(parseArguments(args)).toEqual(expected);
});

test.each<[string, string[], RegExp]>([
  ['a misspelt level suggests the nearest', ['unti'], /did you mean \.\/dev test unit\?/],
  ['an unknown word shows the usage', ['everything'], /it is \.\/dev test \[unit\|/],
  ['an unknown option is refused', ['unit', '--watch'], /no option --watch/],
  ['a filter of several words needs quotes', ['unit', 'one', 'two'], /put "one two" in quotes/],
])('%s', (_, args, message) => {
  expect(() => parseArguments(args)).toThrow(UsageFailure);
  expect(() => parseArguments(args)).toThrow(message);
});
