import { expect, test } from 'vitest';
import { type Answer, allOf, compose, firstOf, planOf } from './compose.ts';
import { type Decision, type Failure, type NamedRule, NO_MEMORY, refTo, type Step, type Upkeep } from './plan.ts';

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

test('a plan has the rows that latch a field: none of their steps runs without it', () => {
  const rows = [row('first', { latch: { token: 't' } }), row('second', {})];
  const plan = compose(answer({ latch: { token: 't' } }), rows, NO_MEMORY, finish);
  expect([plan.latch, plan.latchedBy]).toEqual([{ token: 't' }, { token: ['main', 'first'] }]);
  expect(compose(answer(), [], NO_MEMORY, finish).latchedBy).toBeUndefined();
});

test('refTo has the uid of the object, and its resourceVersion on request', () => {
  const object = { metadata: { namespace: 'n', name: 'a', uid: 'u', resourceVersion: '7' } };
  expect(refTo('Pod', object)).toEqual({ kind: 'Pod', namespace: 'n', name: 'a', uid: 'u' });
  expect(refTo('Pod', object, { resourceVersion: true })).toMatchObject({ uid: 'u', resourceVersion: '7' });
});

const remembered = NO_MEMORY;
const part = (name: string) => ({ kind: 'Part', namespace: 'n', name, uid: `uid-${name}` });
const patch = (name: string): Step => ({ do: 'patch', to: part(name), fields: { metadata: { labels: { a: 'b' } } } });
const remove = (name: string): Step => ({ do: 'delete', what: part(name) });
const row = (name: string, upkeep: Partial<Upkeep<Status>>): Answer<Upkeep<Status>> => ({
  name,
  decision: { message: name, ...upkeep },
});
const answer = (decision: Partial<Decision<Status>> = {}): Answer<Decision<Status>> => ({
  name: 'main',
  decision: { message: 'because', ...decision },
});
const failure = (retryInMs: number): Failure => ({
  in: 'upkeep',
  row: 'labels',
  target: 'Part a',
  is: 'refused',
  message: 'no',
  times: 1,
  since: 0,
  at: 0,
  retryInMs,
});

test('the first row of a stage wins, and every row of upkeep contributes', () => {
  const rules = [decidesFrom('high', 10), decidesFrom('middle', 5)];
  expect([firstOf(rules, 12)?.name, firstOf(rules, 1)]).toEqual(['high', undefined]);
  expect(allOf(rules, 12).map(({ name }) => name)).toEqual(['high', 'middle']);
});

test('every sequence of upkeep is a task of its own, named by its first object', () => {
  const rows = [row('labels', { sequences: [[patch('a'), patch('b')], [patch('c')]] }), row('silent', {})];
  const plan = compose(answer({ steps: [remove('x')] }), rows, remembered, finish);
  expect(plan.upkeep).toEqual([
    { row: 'labels', target: 'Part a', steps: [patch('a'), patch('b')] },
    { row: 'labels', target: 'Part c', steps: [patch('c')] },
  ]);
  expect([plan.rule, plan.steps, plan.contributions?.map((c) => c.row)]).toEqual([
    'main',
    [remove('x')],
    ['labels', 'silent'],
  ]);
});

test.each<[string, Partial<typeof remembered>, string | undefined, number | undefined]>([
  ['backs off', { failures: [failure(1_500)] }, 'backOff', 1_500],
  ['has backed off', { failures: [failure(0)] }, undefined, undefined],
  ['has failed for another object', { failures: [{ ...failure(9), target: 'Part z' }] }, undefined, undefined],
  ['writes a kind whose cache is late', { unconfirmed: ['Part'] }, 'unconfirmed', 1_000],
  ['writes another kind', { unconfirmed: ['Service'] }, undefined, undefined],
])('a row that %s', (_what, memory, deferred, requeueAfterMs) => {
  const rows = [row('labels', { sequences: [[patch('a')]] })];
  const plan = compose(answer(), rows, { ...remembered, ...memory }, finish);
  expect([plan.upkeep?.[0]?.deferred, plan.requeueAfterMs]).toEqual([deferred, requeueAfterMs]);
});

test('of two rows that write one object, the first goes first; one that backs off blocks no other', () => {
  const rows = [
    row('labels', { sequences: [[patch('a')]] }),
    row('owner', { sequences: [[patch('a')], [patch('b')]] }),
  ];
  const deferred = (memory = remembered) =>
    compose(answer(), rows, memory, finish).upkeep?.map((task) => task.deferred);
  expect(deferred()).toEqual([undefined, 'inTurn', undefined]);
  expect(deferred({ ...remembered, failures: [failure(1)] })).toEqual(['backOff', undefined, undefined]);
});

test('steps on an object that upkeep writes wait for the next reconcile, with their latch and their Event', () => {
  const event = { type: 'Normal', reason: 'R', note: 'n' } as const;
  const main = answer({ steps: [remove('a')], latch: { token: 't' }, event });
  const rows = [row('labels', { sequences: [[patch('a')]] })];
  const plan = compose(main, rows, remembered, finish);
  expect([plan.steps, plan.latch, plan.events]).toEqual([[], undefined, []]);
  const later = compose(main, rows, { ...remembered, failures: [failure(1)] }, finish);
  expect([later.steps, later.latch, later.events]).toEqual([[remove('a')], { token: 't' }, [event]]);
});

test('latches are merged, and two rows that latch one field differently are a fault of the rules', () => {
  const twice = (token: string) =>
    compose(answer({ latch: { token: 't' } }), [row('other', { latch: { token } })], remembered, finish);
  expect(twice('t').latch).toEqual({ token: 't' });
  expect(() => twice('u')).toThrow('two rows latch status.token differently');
});
