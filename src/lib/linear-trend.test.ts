import { expect, test } from 'vitest';
import { slopePerHour } from './linear-trend.ts';

const HOUR = 3_600_000;
const every = (minutes: number, ...values: readonly number[]) =>
  values.map((value, i) => ({ at: 1e12 + i * minutes * 60_000, value }));

test.each([
  ['a straight line', every(60, 10, 20, 30, 40), 10],
  ['a fall', every(30, 40, 30, 20), -20],
  ['a saw, which compaction makes of a constant load', every(10, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0), 0],
  ['a saw that rises', every(60, 10, 20, 15, 25, 20, 30, 25, 35), 3],
])('%s', (_what, samples, expected) => {
  expect(slopePerHour(samples)).toBeCloseTo(expected, 0);
});

test('one time has no trend', () => {
  expect([slopePerHour([]), slopePerHour([{ at: HOUR, value: 1 }]), slopePerHour(every(0, 1, 2))]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
