import { expect, test } from 'vitest';
import { ABOUT_DATA } from '../../test/support/about-data.ts';
import { type FailedTest, Reruns, rerunRefusedBecause } from './rerun.ts';

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

test('levels that run side by side have two reruns together', () => {
  const reruns = new Reruns();
  expect(reruns.refusedBecause('contract', [late])).toBeUndefined();
  expect(reruns.refusedBecause('e2e', [late, unloaded])).toMatch(/3 tests failed/);
  expect(reruns.refusedBecause('e2e', [late])).toBeUndefined();
});

test('a failed test is run again when the other lane has ended', async () => {
  const reruns = new Reruns();
  const order: string[] = [];
  const other = Promise.withResolvers<void>();
  const failing = reruns.lane(async () => {
    await reruns.untilAlone();
    order.push('run again');
  });
  const long = reruns.lane(() => other.promise);
  await Promise.resolve();
  order.push('other lane ends');
  other.resolve();
  await Promise.all([failing, long]);
  expect(order).toEqual(['other lane ends', 'run again']);
});

test('two lanes with failed tests run them one after the other', async () => {
  const reruns = new Reruns();
  let running = 0;
  const failing = () =>
    reruns.lane(async () => {
      await reruns.untilAlone();
      expect(++running).toBe(1);
      await Promise.resolve();
      running--;
    });
  await Promise.all([failing(), failing()]);
});

test('a single lane does not wait', async () => {
  const reruns = new Reruns();
  await reruns.lane(() => reruns.untilAlone());
});
