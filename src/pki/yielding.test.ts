import { expect, test } from 'vitest';
import { attempt, costly, type Kept } from './yielding.ts';

/** Adds up, one costly step for each number, and counts the steps. */
function sum(numbers: readonly number[]) {
  const steps: number[] = [];
  const work = (): number =>
    numbers.reduce((total, n) => {
      const add = (): number => {
        steps.push(n);
        return n;
      };
      return total + costly(String(n), 'add', add);
    }, 0);
  return { steps, work };
}

test('a piece that is over ends after one step, and the next goes on from there', () => {
  const { steps, work } = sum([1, 2, 3]);
  const kept: Kept = new Map();
  const piece = () => attempt(kept, () => true, work);
  expect([piece(), piece(), piece()]).toEqual([undefined, undefined, { value: 6 }]);
  expect(steps).toEqual([1, 2, 3]);
});

test('a piece that has time does all', () => {
  const { steps, work } = sum([1, 2, 2, 3]);
  expect(attempt(new Map(), () => false, work)).toEqual({ value: 8 });
  expect(steps).toEqual([1, 2, 3]);
});

test('outside of a piece nothing is kept', () => {
  const { steps, work } = sum([1, 1]);
  expect(work()).toBe(2);
  attempt(new Map(), () => false, work);
  work();
  expect(steps).toEqual([1, 1, 1, 1, 1]);
});

test('a failure is no pause', () => {
  const fail = (): never => {
    throw new Error('no');
  };
  expect(() => attempt(new Map(), () => true, fail)).toThrow('no');
});

test('a step inside of another about the same thing is kept as well', () => {
  const kept: Kept = new Map();
  attempt(
    kept,
    () => false,
    () => costly('x', 'outer', () => costly('x', 'inner', () => 1)),
  );
  expect([...(kept.get('x')?.keys() ?? [])]).toEqual(['inner', 'outer']);
});

test('steps about the same thing are told apart', () => {
  const work = () => ['a', 'b'].map((step) => costly('x', step, () => step)).join('');
  expect(attempt(new Map(), () => false, work)).toEqual({ value: 'ab' });
});
