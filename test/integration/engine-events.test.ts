/** A cache under faults has what happened and nothing else: event by event, compared with what the API server's etcd has. */

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { PodDisruptionBudget } from '../../src/gen/kube.ts';
import { HttpClient } from '../../src/kube/http-client.ts';
import { isAtLeast, type KubeObject, keyOf, type Ref, type Resource, refKey } from '../../src/kube/object.ts';
import { podDisruptionBudgets as budgets } from '../../src/kube/resources.ts';
import { Store } from '../../src/kube/store.ts';
import { Transport } from '../../src/kube/transport.ts';
import type { StoreEvent } from '../../src/kube/watch-protocol.ts';
import { watch } from '../../src/kube/watcher.ts';
import { sleep, systemClock } from '../../src/runtime/clock.ts';
import { Controller } from '../../src/runtime/controller.ts';
import { createLogger } from '../../src/runtime/log.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { refTo } from '../../src/runtime/plan.ts';
import { type FaultProxy, startFaultProxy } from '../support/faults/proxy.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { permutations } from '../support/permutations.ts';
import { type ControlPlane, compact, startControlPlane } from '../support/servers/control-plane.ts';
import { type Change, recordHistory, stateAfter, untrue } from '../support/servers/history.ts';
import { eventually, Processes, pause } from '../support/servers/processes.ts';

let plane: ControlPlane;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-events-'));
  const processes = new Processes(folder);
  cleanup = async () => {
    await plane?.admin.transport.close();
    await processes.stopAll();
    removeFolder(folder);
  };
  plane = await startControlPlane(processes, folder);
});
let cleanup: (() => Promise<void>) | undefined;
afterAll(() => cleanup?.());

let namespaces = 0;
const NAMES = 8;
const aBudget = (ref: Ref): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { ...ref },
  spec: { maxUnavailable: 1, selector: { matchLabels: { a: 'b' } } },
});

/** Creates, changes and deletes objects until the signal. Waits while the server is down. */
async function churn(namespace: string, signal: AbortSignal): Promise<void> {
  const { admin } = plane;
  const one = async (ref: Ref): Promise<void> => {
    for (let round = 0; !signal.aborted; round++)
      try {
        const there = await admin.get(budgets, ref);
        if (!there) await admin.create(budgets, aBudget(ref));
        else if (round % 4 === 3) await admin.delete(budgets, ref, { uid: there.metadata.uid ?? '' });
        else await admin.patch(budgets, ref, { metadata: { annotations: { round: String(round) } } });
        await pause(20);
      } catch {
        await pause(100);
      }
  };
  await Promise.all(Array.from({ length: NAMES }, (_, n) => one({ namespace, name: `churn-${n}` })));
}

/** What a cache reports to its readers, change by change, and what its watch received between two lists. */
function recorded(store: Store<PodDisruptionBudget>, shard: string) {
  const shown: Change[] = [];
  const received: Change[] = [];
  let listing = true;
  let at = '';
  store.onChange((before, after) => {
    const key = keyOf((after ?? before) as KubeObject);
    if (after) shown.push({ key, version: after.metadata.resourceVersion ?? '', is: 'put' });
    else shown.push({ key, version: at, is: 'delete' });
  });
  const emit = (event: StoreEvent<PodDisruptionBudget>): void => {
    if (event.type === 'restart') listing = true;
    if (event.type === 'synced') {
      listing = false;
      at = event.resourceVersion;
    }
    if ('object' in event) {
      at = event.object.metadata.resourceVersion ?? '';
      if (!listing) received.push({ key: keyOf(event.object), version: at, is: event.type });
    }
    store.apply(shard, event);
  };
  return { shown, received, emit };
}

/** Records the newest version of every object that it has written. */
class RememberingClient extends HttpClient {
  readonly written = new Map<string, string>();
  override async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: Ref,
    ...rest: [Readonly<Record<string, unknown>>, object?]
  ) {
    const object = await super.patch(resource, ref, ...rest);
    this.written.set(refKey(ref), object.metadata.resourceVersion ?? '');
    return object;
  }
}

/** A controller that changes its object in every reconcile, and records reads that were older than its own writes. */
function restless(client: RememberingClient, store: Store<PodDisruptionBudget>, signal: AbortSignal) {
  const stale: string[] = [];
  const seenBy = { passes: 0, stale };
  const controller = new Controller<PodDisruptionBudget, object, never>(
    {
      name: 'restless',
      resource: budgets,
      observe: async (key) => {
        const budget = store.get(key);
        const [version, written] = [budget?.metadata.resourceVersion ?? '', client.written.get(key) ?? ''];
        if (!isAtLeast(version, written))
          stale.push(`${key} was read at ${version} after it was written at ${written}`);
        return budget;
      },
      subject: (budget) => budget,
      decide: (budget) => ({
        rule: 'restless',
        message: 'it is',
        steps: [
          {
            do: 'patch',
            to: refTo(budgets.kind, budget, { resourceVersion: true }),
            fields: { metadata: { annotations: { passes: String(seenBy.passes++) } } },
          },
        ],
        status: budget.status ?? {},
        events: [],
      }),
    },
    {
      client,
      recorder: { record: () => undefined },
      resources: new Map<string, Resource>([[budgets.kind, budgets]]),
      clock: systemClock,
      log: createLogger('silent'),
      metrics: createMetrics(),
      stores: [store],
      signal,
    },
  );
  return { controller, seenBy };
}

type Trouble = (proxy: FaultProxy, signal: AbortSignal) => Promise<unknown>;

const again = async (ms: number, signal: AbortSignal, act: () => void): Promise<void> => {
  while (!signal.aborted) {
    await sleep(systemClock, ms, signal);
    act();
  }
};
const restart = async (signal: AbortSignal, meanwhile: () => Promise<void>): Promise<void> => {
  await sleep(systemClock, 2_000, signal);
  await plane.apiServer.kill();
  await meanwhile();
  await plane.apiServer.start();
};
const RESETS = 'a connection that breaks every second';

test.each(
  permutations<[string, 'every change' | 'every last state', Trouble]>(3, [
    [RESETS, 'every change', (proxy, signal) => again(1_000, signal, () => proxy.cut())],
    [
      'watch events that are late',
      'every change',
      async (proxy, signal) => {
        proxy.fault({ verb: 'watch' }, { do: 'watch', how: { is: 'late', ms: 400 } });
        await again(3_000, signal, () => proxy.cut());
      },
    ],
    [
      'watch events that are coalesced',
      'every last state',
      async (proxy, signal) => {
        proxy.fault({ verb: 'watch' }, { do: 'watch', how: { is: 'coalesced', ms: 200 } });
        await again(3_000, signal, () => proxy.cut());
      },
    ],
    [
      'resource versions that are too old again and again',
      'every last state',
      async (proxy, signal) => {
        proxy.fault({ verb: 'watch', every: 2 }, { do: 'watch', how: { is: 'gone' } });
        await again(1_000, signal, () => proxy.cut());
      },
    ],
    ['an API server that is killed and restarted', 'every last state', (_, signal) => restart(signal, async () => {})],
    [
      'an API server that is restarted without its watch history',
      'every last state',
      (_, signal) => restart(signal, () => compact(plane.apiServer.etcdUrl)),
    ],
  ]),
)(
  'with %s, a cache has %s and nothing else, and no controller acts on a state older than its own writes',
  async (name, promise, trouble) => {
    const namespace = `events-${++namespaces}`;
    await plane.admin.transport.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name: namespace } } });
    const history = await recordHistory(plane.apiServer.etcdUrl, budgets, namespace);
    const proxy = await startFaultProxy(await plane.admin.transport.identity());
    const client = new RememberingClient(new Transport(() => Promise.resolve(proxy.identity)));
    const stop = new AbortController();
    onTestFinished(async () => {
      stop.abort();
      history.stop();
      await client.transport.close();
      await proxy.close();
    });
    const store = new Store(budgets, [namespace]);
    const { shown, received, emit } = recorded(store, namespace);
    const { controller, seenBy } = restless(client, store, stop.signal);
    void watch({
      client,
      resource: budgets,
      namespace,
      signal: stop.signal,
      emit,
      onError: () => undefined,
      sleep: (ms, until) => sleep(systemClock, ms, until),
      random: () => 0,
    });
    await eventually('the first list', () => store.synced || undefined);

    const own = { namespace, name: 'own' };
    store.onChange((_, after) => after?.metadata.name === own.name && controller.enqueue(refKey(own)));
    await plane.admin.create(budgets, aBudget(own));
    const writing = new AbortController();
    const limit = name === RESETS && process.env['DEV_TEST_ALL'] ? 60_000 : 8_000;
    const { changes } = history;
    const deletions = () => changes.filter(({ is }) => is === 'delete').length;
    const enough = () => (changes.length > 100 && deletions() > 10 && seenBy.passes > 10) || undefined;
    void pause(limit)
      .then(() => eventually('enough to compare', enough, { timeoutMs: 60_000 })) // a server may be down most of the time
      .catch(() => undefined)
      .finally(() => writing.abort());
    await Promise.all([churn(namespace, writing.signal), trouble(proxy, writing.signal)]);
    await controller.stop();

    await eventually(
      'the cache to equal the API server',
      () => {
        const cached = Object.fromEntries([...store.all()].map((b) => [keyOf(b), b.metadata.resourceVersion]));
        expect(cached).toEqual(Object.fromEntries(stateAfter(changes)));
        return true;
      },
      { timeoutMs: 60_000, seen: () => ({ shown: shown.slice(-5), happened: changes.slice(-5) }) },
    );
    expect(changes.length).toBeGreaterThan(100);
    expect(deletions()).toBeGreaterThan(10);
    expect(untrue(shown, changes)).toEqual([]);
    expect(stateAfter(shown)).toEqual(stateAfter(changes)); // the cache has reported every deletion that matters in the end
    if (promise === 'every change') expect(received).toEqual(changes);
    expect(seenBy.passes).toBeGreaterThan(10);
    expect(seenBy.stale).toEqual([]);
  },
  240_000,
);

test('the comparison detects invented objects, versions that go back, and deleted objects that reappear', () => {
  const change = (is: Change['is'], version: string): Change => ({ key: 'n/a', version, is });
  const happened = [change('put', '9'), change('put', '10'), change('delete', '11'), change('put', '12')];
  expect(untrue(happened, happened)).toEqual([]);
  expect(untrue([change('put', '10'), change('put', '12')], happened)).toEqual([]); // coalesced
  expect(untrue([change('put', '8')], happened)).toHaveLength(1);
  expect(untrue([change('put', '10'), change('put', '9')], happened)).toHaveLength(1);
  expect(untrue([change('delete', '11'), change('put', '10')], happened)).toHaveLength(1);
});
