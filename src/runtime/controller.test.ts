import { expect, test } from 'vitest';
import { ModelApiServer, refused } from '../../test/sim/model/kube.ts';
import { eventually } from '../../test/support/servers/processes.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { ALL_NAMESPACES, Store } from '../kube/store.ts';
import { watch } from '../kube/watcher.ts';
import { systemClock } from './clock.ts';
import { Controller, type Reconciler } from './controller.ts';
import { createLogger } from './log.ts';
import { createMetrics } from './metrics.ts';
import { type NamedCall, type Plan, RetryLater, refTo } from './plan.ts';

type Status = { readonly message?: string; readonly token?: string };
type Thing = KubeObject & { readonly status?: Status };
const things: Resource<Thing> = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const parts: Resource = { group: '', version: 'v1', plural: 'parts', kind: 'Part' };
const plan = (more: Partial<Plan<Status, NamedCall>>): Plan<Status, NamedCall> => ({
  rule: 'r',
  message: 'because',
  steps: [],
  status: {},
  events: [],
  ...more,
});

interface Observed {
  readonly thing: Thing;
  readonly parts: readonly KubeObject[];
  readonly refusal: string | undefined;
  readonly refusedSince: number | undefined;
  readonly unconfirmed: readonly string[];
}

/** A controller of Things made of Parts, on a model of the API server. */
function aController(
  decide: (observed: Observed) => Plan<Status, NamedCall>,
  admit?: () => never,
  call?: (call: NamedCall) => Promise<void>,
  isMinor?: (before: Status, after: Status) => boolean,
  now = (): number => systemClock.now(),
  speed = 1,
  observeOnly = false,
  mayExecute?: () => boolean,
) {
  const server = new ModelApiServer(
    admit ? { admit: (resource, object) => (resource.kind === 'Part' ? admit() : object) } : {},
  );
  const stop = new AbortController();
  const stores = { things: new Store(things, []), parts: new Store(parts, [], ['of'], 'of=a') };
  for (const store of Object.values(stores) as Store<KubeObject>[])
    void watch({
      client: server,
      resource: store.resource,
      ...(store.selector !== undefined && { selector: store.selector }),
      signal: stop.signal,
      emit: (event) => store.apply(ALL_NAMESPACES, event),
      onError: () => undefined,
      sleep: () => Promise.resolve(),
      random: () => 0,
    });
  const observed: Observed[] = [];
  const reconciler: Reconciler<Observed, Status, NamedCall> = {
    name: 'thing',
    resource: things,
    observe: async (key, _signal, { failures: [failure], unconfirmed }) => {
      const thing = stores.things.get(key);
      if (!thing) return undefined;
      const facts = { thing, parts: stores.parts.byIndex('n', 'of', thing.metadata.name ?? '') };
      observed.push({
        ...facts,
        refusal: failure?.message,
        refusedSince: failure?.kind === 'x' ? failure.since : undefined,
        unconfirmed,
      });
      return observed.at(-1);
    },
    subject: ({ thing }) => thing,
    decide,
    ...(call && { call }),
    ...(isMinor && { isMinor }),
    ...(mayExecute && { admit: mayExecute }),
  };
  const notes: string[] = [];
  const metrics = createMetrics();
  const controller = new Controller(reconciler, {
    client: server,
    recorder: { record: (_resource, _object, { note }) => void notes.push(note) },
    resources: new Map<string, Resource>([
      ['Thing', things],
      ['Part', parts],
    ]),
    clock: {
      random: () => 0,
      now,
      monotonic: () => speed * systemClock.monotonic(),
      after: (ms, call) => systemClock.after(ms / speed, call),
    },
    log: createLogger('silent'),
    metrics,
    stores: Object.values(stores),
    signal: stop.signal,
    observeOnly,
  });
  stores.things.onChange((before, after) => controller.enqueue(`n/${(after ?? before)?.metadata.name}`));
  return { server, observed, stores, controller, notes, metrics, stop: () => stop.abort() };
}
const aThing = (name = 'a'): Thing => ({ metadata: { name, namespace: 'n' } });
const aPart = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Part',
  metadata: { name, namespace: 'n', labels: { of: 'a' } },
});
const settle = (ms = 30): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** For events that depend on timers, which are late on a busy machine; `settle` is for events that must not happen. */
const until = (what: string, isSo: () => boolean | Promise<boolean>): Promise<true> =>
  eventually(what, async () => (await isSo()) || undefined, { everyMs: 5 });

test('a reconcile observes what the previous one has created, however stale the cache is', async () => {
  const { server, observed, stop } = aController(({ parts: found }) =>
    plan(found.length === 0 ? { steps: [{ do: 'create', object: aPart('part') }] } : {}),
  );
  server.log.holdBack(parts);
  await server.create(things, aThing());
  await until('the first reconcile', () => observed.length === 1);
  await server.patch(things, { namespace: 'n', name: 'a' }, { metadata: { labels: { poke: '1' } } });
  await settle();
  expect(observed.map((o) => o.parts.length)).toEqual([0]); // the second reconcile waits for the cache
  server.log.letGo(parts);
  await until('the second', () => observed.length > 1);
  await settle();
  expect([...new Set(observed.map((o) => o.parts.length))]).toEqual([0, 1]);
  stop();
});

test('a reconcile does not observe what the previous one has deleted', async () => {
  const { server, observed, stores, stop } = aController(({ parts: [found] }) =>
    plan(found ? { steps: [{ do: 'delete', what: refTo('Part', found) }] } : {}),
  );
  await server.create(parts, aPart('part'));
  await until('the Part in the cache', () => stores.parts.get('n/part') !== undefined);
  server.log.holdBack(parts);
  await server.create(things, aThing());
  await until('the first reconcile', () => observed.length > 0);
  await settle();
  expect(observed.map((o) => o.parts.length)).toEqual([1]);
  server.log.letGo(parts);
  await until('the second', () => observed.length > 1);
  await settle();
  expect(observed.map((o) => o.parts.length)).toEqual([1, 0]);
  stop();
});

test('the cache is still waited for when the last write changed nothing', async () => {
  const { server, observed, stores, stop } = aController(({ parts: found, thing }) =>
    plan(
      found.some((p) => p.metadata.name === 'new')
        ? {}
        : {
            steps: [
              { do: 'create', object: aPart('new') },
              { do: 'patch', to: refTo('Part', found[0] ?? thing), fields: {} },
            ],
          },
    ),
  );
  await server.create(parts, aPart('old'));
  await until('the Part in the cache', () => stores.parts.get('n/old') !== undefined);
  server.log.holdBack(parts);
  await server.create(things, aThing());
  await until('the first reconcile', () => observed.length > 0);
  await settle();
  expect(observed.length).toBe(1);
  server.log.letGo(parts);
  await until('the second', () => observed.length > 1);
  await settle();
  expect(observed.map((o) => o.parts.length)).toEqual([1, 2]);
  stop();
});

test('a refusal by the API server is a fact for the next reconcile and an Event, and the status is still written', async () => {
  const { server, observed, notes, stop } = aController(
    ({ refusal }) =>
      plan({ steps: [{ do: 'create', object: aPart('part') }], status: { message: refusal ?? 'nothing yet' } }),
    () => {
      throw refused('the quota is used up');
    },
  );
  await server.create(things, aThing());
  const status = async () => (await server.get(things, { namespace: 'n', name: 'a' }))?.status?.message;
  await until('the refusal in the status', async () => (await status())?.includes('quota') ?? false);
  expect(notes).toContain('refused by the API server: the quota is used up');
  expect(observed.map((o) => o.refusal).slice(0, 2)).toEqual([
    undefined,
    'the API server refuses: the quota is used up',
  ]);
  expect(await status()).toBe('the API server refuses: the quota is used up');
  stop();
});

test('a call that is refused for now is retried after its retryMs, and the next reconcile observes the message', async () => {
  const calls: string[] = [];
  const { server, observed, stop } = aController(
    ({ refusal }) =>
      plan(
        calls.length < 3
          ? {
              steps: [{ do: 'call', call: { name: 'promote', target: 'x' }, retryMs: 5 }],
              status: { message: refusal ?? '' },
            }
          : {},
      ),
    undefined,
    ({ name }) => {
      calls.push(name);
      return Promise.reject(new RetryLater('etcd refuses: not in sync'));
    },
  );
  await server.create(things, aThing());
  await until('the last call, and the reconcile after it', () => calls.length === 3 && observed.length > 3);
  await settle();
  expect(calls).toEqual(['promote', 'promote', 'promote']);
  expect(observed.map((o) => o.refusal).slice(0, 2)).toEqual([undefined, 'etcd refuses: not in sync']);
  await server.patch(things, { namespace: 'n', name: 'a' }, { metadata: { labels: { poke: '1' } } });
  await until('a reconcile after one without a refusal', () => observed.at(-1)?.refusal === undefined);
  stop();
});

test('a refusal has a kind, and its `since` is the time of the first of that kind in a row', async () => {
  const kinds = ['x', 'x', 'y', 'x'];
  let calls = 0;
  const { server, observed, stop } = aController(
    () => plan(calls < 4 ? { steps: [{ do: 'call', call: { name: 'add', target: 'a' }, retryMs: 5 }] } : {}),
    undefined,
    () => Promise.reject(new RetryLater('refused', kinds[calls++])),
  );
  await server.create(things, aThing());
  await until('a reconcile after the last call', () => observed.length > 4);
  const since = observed.map((o) => o.refusedSince);
  expect(since.slice(0, 4)).toEqual([undefined, since[1], since[1], undefined]);
  expect(since[4]).toBeGreaterThan(since[1] ?? Number.POSITIVE_INFINITY);
  stop();
});

test('refusals that are more than 30 s apart do not count as one', async () => {
  let [calls, time] = [0, 1_000];
  const { server, observed, stop } = aController(
    () => plan(calls < 3 ? { steps: [{ do: 'call', call: { name: 'add', target: 'a' }, retryMs: 5 }] } : {}),
    undefined,
    () => {
      time += calls++ === 1 ? 31_000 : 1_000;
      return Promise.reject(new RetryLater('refused', 'x'));
    },
    undefined,
    () => time,
  );
  await server.create(things, aThing());
  await until('a reconcile after the last call', () => observed.length > 3);
  expect(observed.map((o) => o.refusedSince).slice(0, 4)).toEqual([undefined, 2_000, 33_000, 33_000]);
  stop();
});

test('steps that another controller reverts at once are repeated with growing delays', async () => {
  const { server, observed, stop } = aController(({ thing }) =>
    plan({ steps: [{ do: 'patch', to: refTo('Thing', thing), fields: {} }] }),
  );
  await server.create(things, aThing());
  await settle(250);
  expect(observed.length).toBeLessThan(8);
  await until('more than three', () => observed.length > 3);
  stop();
});

test('a write that the selector of the cache excludes is not waited for', async () => {
  const unlabelled = { ...aPart('p'), metadata: { name: 'p', namespace: 'n' } };
  const { server, observed, stop } = aController(() =>
    plan(observed.length > 1 ? {} : { steps: [{ do: 'create', object: unlabelled }] }),
  );
  await server.create(things, aThing());
  await until('the reconcile after it', () => observed.length > 1);
  stop();
});

/** A controller whose clock is twenty times as fast, and whose status has a message and a token. */
const aCoalescing = (status: () => Status, steps: () => Plan<object, NamedCall>['steps'] = () => []) =>
  aController(
    () => plan({ status: status(), steps: steps() }),
    undefined,
    () => Promise.reject(new RetryLater('refused')),
    (before, after) => before.message !== undefined && before.token === after.token,
    undefined,
    20,
  );

test.each<[string, Plan<object, NamedCall>['steps']]>([
  ['', []],
  [
    ', also while a step is refused again and again',
    [{ do: 'call', call: { name: 'c', target: 'a' }, retryMs: 5_000 }],
  ],
])('a message-only change of status is written after ten seconds%s', async (_, steps) => {
  let message = 'first';
  const { server, controller, stop } = aCoalescing(
    () => ({ message, token: 'x' }),
    () => (message === 'first' ? [] : steps),
  );
  const status = async () => (await server.get(things, { namespace: 'n', name: 'a' }))?.status?.message;
  await server.create(things, aThing());
  await until('the first', async () => (await status()) === 'first');
  message = 'second';
  controller.enqueue('n/a');
  await settle(100);
  expect(await status()).toBe('first');
  await until('the second', async () => (await status()) === 'second');
  stop();
});

test('a message-only change of status is written with the next real change', async () => {
  let status = { message: 'first', token: 'x' };
  const { server, controller, stop } = aCoalescing(() => status);
  const written = async () => (await server.get(things, { namespace: 'n', name: 'a' }))?.status;
  await server.create(things, aThing());
  await until('the first', async () => (await written())?.message === 'first');
  status = { message: 'second', token: 'x' };
  controller.enqueue('n/a');
  await settle();
  expect(await written()).toEqual({ message: 'first', token: 'x' });
  status = { message: 'second', token: 'y' };
  controller.enqueue('n/a');
  await until('the next real change', async () => (await written())?.token === 'y');
  expect(await written()).toEqual(status);
  stop();
});

test('a reconcile that changes nothing is not followed by another one', async () => {
  const { server, observed, stop } = aCoalescing(() => ({ message: 'the same' }));
  await server.create(things, aThing());
  await until('the status', () => observed.length === 2); // it was written and observed
  await settle(400);
  expect(observed.length).toBe(2);
  stop();
});

test('many objects are reconciled concurrently, and a deleted one leaves the queue', async () => {
  const { server, observed, controller, stop } = aController(({ thing }) =>
    plan({ status: { message: thing.metadata.name ?? '' } }),
  );
  for (let n = 0; n < 50; n++) await server.create(things, aThing(`t${n}`));
  const lastStatus = async () => (await server.get(things, { namespace: 'n', name: 't49' }))?.status?.message;
  await until('the last status', async () => (await lastStatus()) === 't49');
  expect(new Set(observed.map((o) => o.thing.metadata.name)).size).toBe(50);
  const [deleted] = observed;
  await server.delete(things, { namespace: 'n', name: 't0' }, { uid: deleted?.thing.metadata.uid ?? '' });
  await until('an end of all reconciles', () => controller.depth === 0 && controller.oldestReconcileMs === 0);
  await controller.stop();
  stop();
});

test('with observeOnly nothing is written, not even the status, and a plan that would change something counts once', async () => {
  const { server, observed, notes, metrics, stop } = aController(
    ({ thing }) =>
      plan(
        thing.metadata.labels?.['calm'] === 'true'
          ? { rule: 'steady' }
          : {
              rule: 'grow',
              latch: { token: 't' },
              steps: [{ do: 'create', object: aPart('part') }],
              status: { message: 'm' },
              events: [{ type: 'Normal', reason: 'Growing', note: 'n' }],
            },
      ),
    undefined,
    undefined,
    undefined,
    undefined,
    1,
    true,
  );
  const a = { namespace: 'n', name: 'a' };
  await server.create(things, aThing());
  await until('the first reconcile', () => observed.length === 1);
  const touched = await server.patch(things, a, { metadata: { labels: { touched: 'true' } } });
  await until('the second', () => observed.length === 2);
  await settle();
  expect((await server.get(things, a))?.metadata.resourceVersion).toBe(touched.metadata.resourceVersion);
  expect([await server.get(parts, { namespace: 'n', name: 'part' }), notes]).toEqual([undefined, []]);
  await server.patch(things, a, { metadata: { labels: { calm: 'true' } } });
  await until('the third', () => observed.length === 3);
  await settle();
  const { values } = await metrics.observedPlans.get();
  expect(values.map(({ labels, value }) => [labels.rule, value])).toEqual([['grow', 1]]);
  stop();
});

test('a plan that is not admitted is not executed, not even its latch, and is decided again at once', async () => {
  let asked = 0;
  const { server, observed, stop } = aController(
    ({ parts: found }) =>
      plan(found.length === 0 ? { latch: { token: 't' }, steps: [{ do: 'create', object: aPart('part') }] } : {}),
    undefined,
    undefined,
    undefined,
    undefined,
    1,
    false,
    () => ++asked > 1,
  );
  const { metadata } = await server.create(things, aThing());
  await until('the second reconcile', () => observed.length >= 2);
  expect(observed[1]?.thing.metadata.resourceVersion).toBe(metadata.resourceVersion);
  await until('the Part', async () => (await server.get(parts, { namespace: 'n', name: 'part' })) !== undefined);
  stop();
});
