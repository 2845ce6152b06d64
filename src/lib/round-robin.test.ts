import { expect, test } from 'vitest';
import { RoundRobin } from './round-robin.ts';

const filled = (...keys: readonly string[]): RoundRobin<number> => {
  const queue = new RoundRobin<number>((key) => key.split('/')[0] ?? '');
  keys.forEach((key, i) => queue.set(key, i));
  return queue;
};
const drained = (queue: RoundRobin<number>): string[] => {
  const keys: string[] = [];
  for (let next = queue.take(); next; next = queue.take()) keys.push(next.key);
  return keys;
};

test('groups take turns, and each keeps the order of arrival', () => {
  expect(drained(filled('a/1', 'a/2', 'a/3', 'b/1', 'c/1', 'b/2'))).toEqual(['a/1', 'b/1', 'c/1', 'a/2', 'b/2', 'a/3']);
});
test('a group that comes later is next, whatever another one has waiting', () => {
  const queue = filled(...Array.from({ length: 10_000 }, (_, i) => `a/${i}`));
  queue.take();
  queue.set('b/1', 0);
  expect([queue.take()?.key, queue.take()?.key]).toEqual(['a/1', 'b/1']);
});
test('an entry that may not be taken does not hold up its group, nor a group the others', () => {
  const queue = filled('a/1', 'a/2', 'b/1');
  expect(queue.take((key) => key !== 'a/1')?.key).toBe('a/2');
  expect(queue.take(undefined, (group) => group !== 'a')?.key).toBe('b/1');
  expect(queue.take(undefined, () => false)).toBeUndefined();
  expect(queue.size).toBe(1);
});
test('an entry that is set again keeps its place and takes the new value', () => {
  const queue = filled('a/1', 'a/2');
  queue.set('a/1', 7);
  expect([queue.size, queue.get('a/1'), queue.take()]).toEqual([2, 7, { key: 'a/1', value: 7 }]);
});
test('what is deleted is not taken, and counts no more', () => {
  const queue = filled('a/1', 'b/1');
  queue.delete('a/1');
  queue.delete('a/1');
  queue.delete('c/1');
  expect([queue.size, drained(queue)]).toEqual([1, ['b/1']]);
  const cleared = filled('a/1');
  cleared.clear();
  expect([cleared.size, cleared.take()]).toEqual([0, undefined]);
});
test('the largest group loses its oldest entry', () => {
  const queue = filled('b/1', 'a/1', 'a/2', 'a/3', 'b/2');
  expect(queue.dropFromLargest()).toBe('a');
  expect(drained(queue)).toEqual(['b/1', 'a/2', 'b/2', 'a/3']);
  expect(queue.dropFromLargest()).toBeUndefined();
});
