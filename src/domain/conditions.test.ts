import { expect, test } from 'vitest';
import { changedConditions, messagesOnly, updateConditions } from './conditions.ts';

const up = { type: 'Available', status: 'True', reason: 'QuorumHealthy', message: 'All members are ready' } as const;
const before = updateConditions(undefined, [up], { generation: 1, now: '2026-01-01T00:00:00Z' });

test('lastTransitionTime is kept while the status is the same, although reason and generation change', () => {
  const after = updateConditions(before, [{ ...up, reason: 'QuorumAvailable' }], {
    generation: 2,
    now: '2026-02-02T00:00:00Z',
  });
  expect(after).toEqual([
    { ...up, reason: 'QuorumAvailable', observedGeneration: 2, lastTransitionTime: '2026-01-01T00:00:00Z' },
  ]);
});

test('lastTransitionTime changes with the status', () => {
  const [after] = updateConditions(before, [{ ...up, status: 'False' }], {
    generation: 1,
    now: '2026-02-02T00:00:00Z',
  });
  expect(after?.lastTransitionTime).toBe('2026-02-02T00:00:00Z');
});

test('an update with the same value changes nothing', () => {
  expect(updateConditions(before, [up], { generation: 1, now: '2026-02-02T00:00:00Z' })).toEqual(before);
});

test('conditions of other types are kept', () => {
  const other = { ...up, type: 'Other' };
  expect(
    updateConditions([...before, ...updateConditions(undefined, [other], { generation: 1, now: 't' })], [up], {
      generation: 1,
      now: 't',
    }).map((c) => c.type),
  ).toEqual(['Available', 'Other']);
});

test('only a new status or reason leads to an Event, not a new message', () => {
  const update = (v: Partial<typeof up> | object) =>
    updateConditions(before, [{ ...up, ...v }], { generation: 1, now: 't' });
  expect(changedConditions(before, update({ message: 'still fine' }))).toEqual([]);
  expect(changedConditions(before, update({ reason: 'QuorumAvailable' })).map((c) => c.reason)).toEqual([
    'QuorumAvailable',
  ]);
  expect(changedConditions(undefined, before)).toEqual(before);
});

test('a message that is too long for the API server is truncated', () => {
  const [updated] = updateConditions(undefined, [{ ...up, message: 'x'.repeat(40_000) }], { generation: 1, now: 't' });
  expect(updated?.message).toBe(`${'x'.repeat(32_767)}…`);
});

test.each<[string, object, boolean]>([
  ['nothing', {}, true],
  ['a message', { conditions: [{ ...before[0], message: 'other' }] }, true],
  ['a late field', { size: 2 }, true],
  ['another field', { count: 2 }, false],
  ['a reason', { conditions: [{ ...before[0], reason: 'Other' }] }, false],
  ['the generation', { conditions: [{ ...before[0], observedGeneration: 2 }] }, false],
  ['one condition less', { conditions: [] }, false],
])('whether two statuses differ in messages only: %s', (_, change, expected) => {
  const status = { conditions: before, count: 1, size: 1 };
  expect(messagesOnly(status, { ...status, ...change }, ['size'])).toBe(expected);
});
