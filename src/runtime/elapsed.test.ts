import { expect, test } from 'vitest';
import { ClockJumps, ObservedStates } from './elapsed.ts';

const clock = () => {
  let [wall, steady] = [1_000_000, 0];
  return {
    now: () => wall,
    monotonic: () => steady,
    pass: (ms: number, jump = 0): void => {
      wall += ms + jump;
      steady += ms;
    },
  };
};

test('a state has lasted since this process first observed it, and starts over when it changes', () => {
  const time = clock();
  const states = new ObservedStates(time);
  expect(states.forMs('node', 'NotReady 1')).toBe(0);
  time.pass(5_000, 3_600_000);
  expect(states.forMs('node', 'NotReady 1')).toBe(5_000);
  expect(states.forMs('other', 'NotReady 1')).toBe(0);
  expect(states.forMs('node', 'NotReady 2')).toBe(0);
  time.pass(1_000);
  expect(states.forMs('node', undefined)).toBe(0);
  expect(states.forMs('node', 'NotReady 2')).toBe(0);
});

test('a jump of the wall clock makes deadlines of that time later, and no others', () => {
  const time = clock();
  const jumps = new ClockJumps(time);
  time.pass(60_000);
  expect(jumps.aheadMs(10_000)).toBe(0);
  time.pass(1_000, 500); // an ordinary correction
  expect(jumps.aheadMs(10_000)).toBe(0);
  time.pass(1_000, 3_600_000);
  expect(jumps.aheadMs(10_000)).toBe(3_600_000);
  time.pass(10_000);
  expect(jumps.aheadMs(10_000)).toBe(3_600_000);
  time.pass(1);
  expect([jumps.aheadMs(10_000), jumps.aheadMs(20_000)]).toEqual([0, 3_600_000]);
  time.pass(1_000, -3_600_000);
  expect(jumps.aheadMs(20_000)).toBe(0);
  expect(jumps.aheadMs(5_000)).toBe(0);
});
