import { expect, test } from 'vitest';
import { type Decision, type NamedRule, planOf, refTo } from './plan.ts';

type Status = { readonly token?: string };
const decidesFrom = (name: string, when: number): NamedRule<number, Decision<Status>> => ({
  name,
  rule: (n) => (n >= when ? { message: `at least ${when}`, latch: { token: name } } : undefined),
});
const finish = () => ({ status: {}, events: [], requeueAfterMs: undefined });

test('the first rule that decides wins, and its latch is in the plan', () => {
  const rules = [decidesFrom('high', 10), decidesFrom('middle', 5), decidesFrom('any', 0)];
  const plans = [12, 7, 1].map((n) => planOf(rules, n, finish));
  expect(plans.map((p) => [p.rule, p.latch])).toEqual([
    ['high', { token: 'high' }],
    ['middle', { token: 'middle' }],
    ['any', { token: 'any' }],
  ]);
});

test('refTo has the uid of the object, and its resourceVersion on request', () => {
  const object = { metadata: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '7' } };
  expect(refTo('Pod', object)).toEqual({ kind: 'Pod', namespace: 'n', name: 'a', uid: 'u' });
  expect(refTo('Pod', object, { resourceVersion: true })).toMatchObject({ uid: 'u', resourceVersion: '7' });
});
