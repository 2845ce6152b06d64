import { expect, test } from 'vitest';
import { changedConditions, messagesOnly, updateConditions } from './conditions.ts';

const up = { type: 'Available', status: 'True', reason: 'QuorumHealthy', message: 'All members are ready' } as const;
const before = updateConditions(undefined, [up], { generation: 1, now: '2026-01-01T00:00:00Z' });

test('the time of a condition stays while its status stays, though reason and generation move', () => {
  const after = updateConditions(before, [{ ...up, reason: 'QuorumAvailable' }], {
    generation: 2,
    now: '2026-02-02T00:00:00Z',
  });
  expect(after).toEqual([
    { ...up, reason: 'QuorumAvailable', observedGeneration: 2, lastTransitionTime: '2026-01-01T00:00:00Z' },
  ]);
});

test('the time moves with the status', () => {
  const [after] = updateConditions(before, [{ ...up, status: 'False' }], {
    generation: 1,
    now: '2026-02-02T00:00:00Z',
  });
  expect(after?.lastTransitionTime).toBe('2026-02-02T00:00:00Z');
});

test('saying the same again changes nothing', () => {
  expect(updateConditions(before, [up], { generation: 1, now: '2026-02-02T00:00:00Z' })).toEqual(before);
});

test('conditions of others are kept', () => {
  const other = { ...up, type: 'Other' };
  expect(
    updateConditions([...before, ...updateConditions(undefined, [other], { generation: 1, now: 't' })], [up], {
      generation: 1,
      now: 't',
    }).map((c) => c.type),
  ).toEqual(['Available', 'Other']);
});

test('only a new status or reason is worth an Event, not a new wording', () => {
  const say = (v: Partial<typeof up> | object) =>
    updateConditions(before, [{ ...up, ...v }], { generation: 1, now: 't' });
  expect(changedConditions(before, say({ message: 'still fine' }))).toEqual([]);
  expect(changedConditions(before, say({ reason: 'QuorumAvailable' })).map((c) => c.reason)).toEqual([
    'QuorumAvailable',
  ]);
  expect(changedConditions(undefined, before)).toEqual(before);
});

test('a message that the API server would refuse is cut', () => {
  const [said] = updateConditions(undefined, [{ ...up, message: 'x'.repeat(40_000) }], { generation: 1, now: 't' });
  expect(said?.message).toBe(`${'x'.repeat(32_767)}…`);
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
