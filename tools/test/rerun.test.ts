import { expect, test } from 'vitest';
import { ABOUT_DATA } from '../../test/support/about-data.ts';
import { type FailedTest, rerunRefusedBecause } from './rerun.ts';

const late: FailedTest = { file: 'a.test.ts', name: 'a Pod comes back', messages: ['Error: no Pod after 30 s'] };
const lost: FailedTest = { ...late, messages: [`AssertionError: ${ABOUT_DATA}: expected [ 'write 7' ] to equal []`] };
const unloaded: FailedTest = { file: 'b.test.ts', messages: ['Hook timed out'] };

test.each(['contract', 'integration', 'e2e'] as const)('one failed test of the %s level is run again', (level) => {
  expect(rerunRefusedBecause(level, [late], 0)).toBeUndefined();
});

test('a file whose hook failed is run again', () => {
  expect(rerunRefusedBecause('e2e', [unloaded], 0)).toBeUndefined();
});

test.each<[string, Parameters<typeof rerunRefusedBecause>, RegExp]>([
  ['a unit test', ['unit', [late], 0], /unit level/],
  ['a simulated world', ['sim', [late], 0], /sim level/],
  ['a test that failed about data', ['e2e', [lost], 0], /a Pod comes back failed about data/],
  ['a test beside one that failed about data', ['e2e', [late, lost], 0], /about data/],
  ['the third failed test of a level', ['e2e', [late, late, unloaded], 0], /3 tests failed/],
  ['the third failed test of a run', ['e2e', [late], 2], /3 tests failed/],
  ['an error outside any test', ['contract', [], 0], /outside any test/],
])('%s is not run again', (_, [level, failed, alreadyRerun], message) => {
  expect(rerunRefusedBecause(level, failed, alreadyRerun)).toMatch(message);
});
