import { expect, test } from 'vitest';
import { measureTimes, summarise, table } from './figures.ts';

test.each([
  [[5], 5, 5, 5],
  [[3, 1, 2], 2, 1, 3],
  [[4, 1, 2, 10], 3, 1, 10],
])('of %j the median is %i, the least %i and the most %i', (samples, median, least, most) => {
  expect(summarise('x', samples)).toMatchObject({ median, least, most, runs: samples.length });
});

test('the first run warms up and does not count', async () => {
  let calls = 0;
  const figure = await measureTimes('x', 3, async () => calls++);
  expect(calls).toBe(4);
  expect(figure.runs).toBe(3);
});

test('figures stand in columns', () => {
  expect(table([summarise('short', [10]), summarise('a longer name', [1234])])).toBe(
    [
      'what            median    least     most  runs',
      'short            10 ms    10 ms    10 ms     1',
      'a longer name  1234 ms  1234 ms  1234 ms     1',
    ].join('\n'),
  );
});
