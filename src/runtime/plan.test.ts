import { expect, test } from 'vitest';
import { type NamedRule, planOf, seen } from './plan.ts';

type Status = { readonly token?: string };
const says = (name: string, when: number): NamedRule<number, Status> => ({
  name,
  rule: (n) => (n >= when ? { why: `at least ${when}`, latch: { token: name } } : undefined),
});
const told = () => ({ status: {}, notices: [], wakeAfter: undefined });

test('the first rule that answers wins, with what it wants to have recorded', () => {
  const rules = [says('high', 10), says('middle', 5), says('any', 0)];
  const plans = [12, 7, 1].map((n) => planOf(rules, n, told));
  expect(plans.map((p) => [p.rule, p.latch])).toEqual([
    ['high', { token: 'high' }],
    ['middle', { token: 'middle' }],
    ['any', { token: 'any' }],
  ]);
});

test('what was seen is that very object; strictly, that very version of it', () => {
  const object = { metadata: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '7' } };
  expect(seen('Pod', object)).toEqual({ kind: 'Pod', namespace: 'n', name: 'a', uid: 'u' });
  expect(seen('Pod', object, 'this version')).toMatchObject({ uid: 'u', resourceVersion: '7' });
});
