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

test('a slice that is over ends after one step, and the next one continues from there', () => {
  const { steps, work } = sum([1, 2, 3]);
  const kept: Kept = new Map();
  const slice = () => attempt(kept, () => true, work);
  expect([slice(), slice(), slice()]).toEqual([undefined, undefined, { value: 6 }]);
  expect(steps).toEqual([1, 2, 3]);
});

test('a slice with enough time does all steps', () => {
  const { steps, work } = sum([1, 2, 2, 3]);
  expect(attempt(new Map(), () => false, work)).toEqual({ value: 8 });
  expect(steps).toEqual([1, 2, 3]);
});

test('outside of a slice nothing is cached', () => {
  const { steps, work } = sum([1, 1]);
  expect(work()).toBe(2);
  attempt(new Map(), () => false, work);
  work();
  expect(steps).toEqual([1, 1, 1, 1, 1]);
});

test('an error is not a pause', () => {
  const fail = (): never => {
    throw new Error('no');
  };
  expect(() => attempt(new Map(), () => true, fail)).toThrow('no');
});

test('a nested step with the same input is cached as well', () => {
  const kept: Kept = new Map();
  attempt(
    kept,
    () => false,
    () => costly('x', 'outer', () => costly('x', 'inner', () => 1)),
  );
  expect([...(kept.get('x')?.keys() ?? [])]).toEqual(['inner', 'outer']);
});

test('steps with the same input are cached separately', () => {
  const work = () => ['a', 'b'].map((step) => costly('x', step, () => step)).join('');
  expect(attempt(new Map(), () => false, work)).toEqual({ value: 'ab' });
});
