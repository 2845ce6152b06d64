import { expect, test } from 'vitest';
import { type Decision, type NamedRule, planOf, refTo } from './plan.ts';

type Status = { readonly token?: string };
const says = (name: string, when: number): NamedRule<number, Decision<Status>> => ({
  name,
  rule: (n) => (n >= when ? { message: `at least ${when}`, latch: { token: name } } : undefined),
});
const finish = () => ({ status: {}, events: [], requeueAfterMs: undefined });

test('the first rule that answers wins, with what it wants to have recorded', () => {
  const rules = [says('high', 10), says('middle', 5), says('any', 0)];
  const plans = [12, 7, 1].map((n) => planOf(rules, n, finish));
  expect(plans.map((p) => [p.rule, p.latch])).toEqual([
    ['high', { token: 'high' }],
    ['middle', { token: 'middle' }],
    ['any', { token: 'any' }],
  ]);
});

test('what was seen is that very object; strictly, that very version of it', () => {
  const object = { metadata: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '7' } };
  expect(refTo('Pod', object)).toEqual({ kind: 'Pod', namespace: 'n', name: 'a', uid: 'u' });
  expect(refTo('Pod', object, { resourceVersion: true })).toMatchObject({ uid: 'u', resourceVersion: '7' });
});
