import { describe, expect, test } from 'vitest';
import { ApiError } from '../kube/errors.ts';
import { LatchDropped, TargetGone } from './execute.ts';
import { Failures } from './failures.ts';
import { type NamedCall, type Plan, RetryLater, type Step } from './plan.ts';

const ref = (uid = 'u') => ({ kind: 'Service', namespace: 'n', name: 'db', uid });
const patch = (label: string, uid?: string): Step<NamedCall> => ({
  do: 'patch',
  to: ref(uid),
  fields: { metadata: { labels: { team: label } } },
});
const remove = (uid: string): Step<NamedCall> => ({ do: 'delete', what: { ...ref(uid), kind: 'Pod' } });
const refused = new ApiError('PATCH', 403, { message: 'no labels here' });
const internal = new ApiError('POST', 500, { message: 'range is full' });

/** Plans of one key, executed at times that a test sets. */
function aKey() {
  let now = 1_000_000;
  let wall = now;
  const clock = { now: () => wall, monotonic: () => now, random: () => 1, after: () => () => undefined };
  const failures = new Failures(clock);
  const base = { rule: 'main', message: '', status: {}, events: [] };
  const upkeep = (steps: readonly Step<NamedCall>[], error?: Error) => {
    const [step = patch('a')] = steps;
    const task = { row: 'labels', target: 'Service db', steps };
    const plan: Plan<object, NamedCall> = { ...base, steps: [], upkeep: steps.length === 0 ? [] : [task] };
    const outcome = error === undefined ? ({ is: 'done' } as const) : ({ is: 'failed', step, error } as const);
    const executed = { steps: { is: 'done' } as const, upkeep: steps.length === 0 ? [] : [{ task, outcome }] };
    return failures.record('k', plan, executed);
  };
  const steps = (own: readonly Step<NamedCall>[], error?: Error, more = {}) => {
    const [step = patch('a')] = own;
    const plan: Plan<object, NamedCall> = { ...base, steps: own, ...more };
    const heldMs = failures.heldForMs('k', plan);
    if (heldMs > 0) return { held: heldMs };
    const outcome = error === undefined ? ({ is: 'done' } as const) : ({ is: 'failed', step, error } as const);
    return failures.record('k', plan, { steps: outcome, upkeep: [] });
  };
  const latch = (fields: object) => steps([], undefined, { latch: fields });
  /** Executes a plan whose latch the API server drops: these paths. */
  const dropping = (fields: object, own: readonly Step<NamedCall>[], ...paths: readonly string[]) => {
    const plan: Plan<object, NamedCall> = { ...base, latch: fields, steps: own };
    const dropped = paths.length > 0 ? new LatchDropped(paths) : undefined;
    const [step] = own;
    const outcome = dropped && step ? ({ is: 'failed', step, error: dropped } as const) : ({ is: 'done' } as const);
    return failures.record('k', plan, { steps: outcome, upkeep: [], ...(dropped && { dropped }) });
  };
  const wait = (ms: number): void => {
    now += ms;
    wall += ms;
  };
  const setBack = (ms: number): void => {
    wall -= ms;
  };
  return { failures, upkeep, steps, latch, dropping, known: () => failures.of('k'), wait, setBack };
}

test('a refused task backs off for longer each time, without an error for the reconcile', () => {
  const key = aKey();
  const delays = [1, 2, 3].map(() => {
    const { afterMs = 0, error } = key.upkeep([patch('a')], refused);
    expect(error).toBeUndefined();
    key.wait(afterMs);
    return afterMs;
  });
  expect(delays).toEqual([1_000, 2_000, 4_000]);
  expect(key.known()).toMatchObject([
    { row: 'labels', target: 'Service db', is: 'refused', message: 'the API server refuses: no labels here', times: 3 },
  ]);
});

test.each<[string, (key: ReturnType<typeof aKey>) => unknown]>([
  ['succeeds', (key) => key.upkeep([patch('a')])],
  ['is not wanted any more', (key) => key.upkeep([])],
])('a failure ends when the task %s', (_how, end) => {
  const key = aKey();
  key.upkeep([patch('a')], internal);
  expect(key.known()).toMatchObject([{ is: 'failed', message: expect.stringContaining('range is full') }]);
  end(key);
  expect(key.known()).toEqual([]);
});

test('an object that was changed meanwhile is no failure: the next reconcile decides again', () => {
  const key = aKey();
  expect(key.upkeep([patch('a')], new TargetGone('x')).afterMs).toBe(0);
  expect(key.known()).toEqual([]);
});

test('a write that succeeds four times in ten minutes is overwritten by another writer', () => {
  const key = aKey();
  const delays = [1, 2, 3, 4, 5].map(() => {
    key.wait(60_000);
    return key.upkeep([patch('a')]).afterMs;
  });
  expect(delays).toEqual([0, 0, 0, 1_000, 2_000]);
  expect(key.known()).toMatchObject([{ is: 'overwritten', times: 5 }]);
  expect(key.known()[0]?.message).toContain('another controller or an admission webhook changes it');
});

test('a user reads which fields another writer changes, and not all of a hundred', () => {
  const overwritten = (step: Step<NamedCall>): string | undefined => {
    const key = aKey();
    for (const _ of [1, 2, 3, 4]) key.upkeep([step]);
    return key.known()[0]?.message;
  };
  expect(overwritten(patch('a'))).toContain('has written metadata.labels.team again');
  const spec = { selector: { app: 'etcd' }, ports: [{ port: 2379 }] };
  expect(overwritten({ do: 'apply', to: ref(), fields: { metadata: { annotations: {} }, spec } })).toContain(
    'has written spec.selector.app, spec.ports again',
  );
  const labels = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`l${i}`, null]));
  expect(overwritten({ do: 'patch', to: ref(), fields: { metadata: { labels } } })).toMatch(
    /written (metadata\.labels\.l\d, ){5}95 more again/,
  );
  expect(overwritten({ do: 'create', object: { apiVersion: 'v1', kind: 'Service', metadata: {} } })).toContain(
    'has written it again',
  );
});

test('a write that another writer reverts at once is held back, although the object is as wanted for a moment', () => {
  const key = aKey();
  for (const _ of [1, 2, 3, 4]) {
    key.upkeep([patch('a')]);
    key.wait(10);
    key.upkeep([]);
  }
  expect(key.known()).toMatchObject([{ is: 'overwritten', times: 4 }]);
  expect(key.upkeep([]).afterMs).toBe(9_990); // to report that it lasts
  key.wait(9_990);
  expect(key.upkeep([]).afterMs).toBe(0);
  expect([key.known(), key.upkeep([]).afterMs]).toEqual([[], undefined]);
});

test('different writes of one object are no conflict', () => {
  const key = aKey();
  for (const label of ['a', 'b', 'c', 'd', 'e']) expect(key.upkeep([patch(label)]).afterMs).toBe(0);
  expect(key.known()).toEqual([]);
});

test('a row that changes its own mind, as when a cluster is scaled up and down, has no conflict with another writer', () => {
  const key = aKey();
  for (const label of ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b', 'a']) expect(key.upkeep([patch(label)]).afterMs).toBe(0);
  expect(key.known()).toEqual([]);
});

test('two fields that other writers revert in turn are a conflict', () => {
  const key = aKey();
  const annotate: Step<NamedCall> = { do: 'patch', to: ref(), fields: { metadata: { annotations: { a: 'b' } } } };
  for (const _ of [1, 2, 3, 4]) {
    key.upkeep([patch('a')]);
    key.upkeep([annotate]);
  }
  expect(key.known()).toMatchObject([{ is: 'overwritten', times: 4 }]);
});

test('a Pod that is deleted and created again and again is held back, although each Pod has another uid', () => {
  const key = aKey();
  const cycle = (n: number) => {
    key.wait(500);
    return [
      key.steps([remove(`uid-${n}`)]),
      key.steps([{ do: 'create', object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'db' } } }]),
    ];
  };
  for (const n of [1, 2, 3]) expect(cycle(n)).toEqual([{ afterMs: 0 }, { afterMs: 0 }]);
  const [first] = cycle(4);
  expect(first).toEqual({ afterMs: 200 });
  expect(key.known()).toMatchObject([{ row: 'main', target: 'Pod db', is: 'overwritten' }]);
  expect(key.steps([remove('uid-5')])).toEqual({ held: 200 });
});

test('a Pod that a person deletes every two minutes is recreated at once', () => {
  const key = aKey();
  for (let n = 0; n < 20; n++) {
    key.wait(120_000);
    expect(key.steps([remove(`uid-${n}`)])).toEqual({ afterMs: 0 });
  }
});

test('a step that fails ends the reconcile with its error, and is a fact until a sequence succeeds', () => {
  const key = aKey();
  expect(key.steps([patch('a')], internal)).toMatchObject({ error: internal });
  expect(key.known()).toMatchObject([{ row: 'main', target: 'Service db', is: 'failed' }]);
  key.steps([]);
  expect(key.known()).toEqual([]);
});

test('a call that is refused for now is repeated after its own delay, and named', () => {
  const key = aKey();
  const call: Step<NamedCall> = { do: 'call', call: { name: 'promote', target: 'x' }, retryMs: 50 };
  expect(key.steps([call], new RetryLater('not in sync', 'kind'))).toEqual({ afterMs: 50 });
  expect(key.known()).toMatchObject([{ is: 'later', call: 'promote', kind: 'kind', message: 'not in sync' }]);
});

test('a wall clock that is set back holds nothing back', () => {
  const key = aKey();
  key.steps([remove('uid-1')]);
  key.upkeep([patch('a')], refused);
  key.setBack(3_600_000);
  expect(key.known()[0]?.retryInMs).toBe(1_000);
  expect(key.steps([remove('uid-2')])).toEqual({ afterMs: 0 });
});

test('a task that finds its object changed again and again backs off, and is reported', () => {
  const key = aKey();
  const delays = [1, 2, 3, 4].map(() => key.upkeep([patch('a')], new TargetGone('deleted')).afterMs);
  expect(delays).toEqual([0, 0, 1_000, 2_000]);
  expect(key.known()).toMatchObject([{ is: 'failed', target: 'Service db' }]);
});

test('a latch that does not stay in the status, as with an older CRD, is written with growing delays', () => {
  const key = aKey();
  const latch = (n: number) => key.latch({ observed: { a: 1 }, progressDeadline: `2026-01-01T00:00:0${n}Z` });
  expect([1, 2, 3, 4].map(latch)).toEqual([{ afterMs: 0 }, { afterMs: 0 }, { afterMs: 0 }, { afterMs: 200 }]);
  expect(latch(5)).toEqual({ held: 200 });
});

test('an upkeep call that is refused for now is retried less and less often', () => {
  const key = aKey();
  const call: Step<NamedCall> = { do: 'call', call: { name: 'enableAuth', target: 'root' }, retryMs: 500 };
  const delays = [1, 2, 3].map(() => {
    const { afterMs = 0 } = key.upkeep([call], new RetryLater('no leader'));
    key.wait(afterMs);
    return afterMs;
  });
  expect(delays).toEqual([500, 1_000, 2_000]);
});

describe('a latch that the API server has dropped', () => {
  const marker = { marker: { member: 'db-1' } };

  test('is a failure with its fields, for at least 15 seconds, then 30, and so on', () => {
    const key = aKey();
    const { error } = key.dropping(marker, [patch('a')], 'marker');
    expect(error).toBeInstanceOf(LatchDropped);
    expect(key.known()).toMatchObject([
      { is: 'dropped', in: 'steps', target: 'the status', fields: ['status.marker'], times: 1, retryInMs: 30_000 },
      { is: 'dropped', target: 'Service db' },
    ]);
    key.wait(30_000);
    key.dropping(marker, [patch('a')], 'marker');
    expect(key.known()[0]).toMatchObject({ times: 2, retryInMs: 60_000 });
  });

  test('is remembered while rules wait for its retry, and for a moment more', () => {
    const key = aKey();
    key.dropping(marker, [patch('a')], 'marker');
    expect(key.steps([patch('waiting')])).toEqual({ afterMs: 0 });
    expect(key.known()).toMatchObject([{ is: 'dropped', fields: ['status.marker'], retryInMs: 30_000 }]);
    key.wait(39_999);
    key.steps([]);
    expect(key.known()).toHaveLength(1);
    key.wait(1);
    expect(key.steps([])).toEqual({ afterMs: 0 });
    expect(key.known()).toEqual([]);
  });

  test('is over when the API server keeps it; another latch says nothing about it', () => {
    const key = aKey();
    key.dropping(marker, [], 'marker.member');
    key.dropping({ other: 1 }, []);
    expect(key.known()).toHaveLength(1);
    key.dropping(marker, []);
    expect(key.known()).toEqual([]);
  });

  test('is attempted again after its back-off, and does not hold up the other steps of its plan', () => {
    const key = aKey();
    for (let i = 0; i < 5; i++) expect(key.dropping(marker, [], 'marker').afterMs).toBeGreaterThanOrEqual(30_000);
    expect(key.known()).toMatchObject([{ is: 'dropped' }]);
  });
});
