import { expect, test } from 'vitest';
import { isMet, measureTimes, summarise, table } from './figures.ts';

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

test('a figure with a limit shows whether it is met, and what the Go operator needs', () => {
  const few = summarise('writes', [16, 17, 40], 'count', { atMost: 30, go: '84-97' });
  const slow = summarise('clusters per second', [7.5], 's', { atLeast: 8 });
  expect([few, slow, summarise('x', [1])].map(isMet)).toEqual([true, false, true]);
  expect(table([few, slow])).toBe(
    [
      'what                 median  least   most  runs  limit           Go operator',
      'writes                   17     16     40     3   ≤ 30       ok        84-97',
      'clusters per second   7.5 s  7.5 s  7.5 s     1  ≥ 8 s  NOT MET',
    ].join('\n'),
  );
});
