import { expect, test } from 'vitest';
import { isPodOver, isPodReady, troubleOf } from './pod.ts';

const withCondition = (type: string, status: string, message?: string) => ({
  status: { conditions: [{ type, status, ...(message !== undefined && { message }) }] },
});

test('a Pod is ready only by its condition Ready', () => {
  expect(isPodReady(withCondition('Ready', 'True'))).toBe(true);
  expect(isPodReady(withCondition('Ready', 'False'))).toBe(false);
  expect(isPodReady(withCondition('PodScheduled', 'True'))).toBe(false);
});

test.each([
  ['Failed', true],
  ['Succeeded', true],
  ['Running', false],
])('the containers of a Pod in the phase %s never start again: %s', (phase, isOver) => {
  expect(isPodOver({ status: { phase } })).toBe(isOver);
});

test('a Pod that no node has room for reports why, and one that has a node does not', () => {
  expect(troubleOf(withCondition('PodScheduled', 'False', 'no room'), 'etcd')).toBe('not scheduled: no room');
  expect(troubleOf(withCondition('PodScheduled', 'True'), 'etcd')).toBeUndefined();
  expect(troubleOf(withCondition('Ready', 'False'), 'etcd')).toBeUndefined();
});
