/** The operator as a process, a real API server, and faults between them. With every fault there is one seed, and the cluster becomes ready. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Fault, Match } from '../support/faults/proxy.ts';
import { permutations } from '../support/permutations.ts';
import { compact } from '../support/servers/control-plane.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import { alive, named, scenery, writes } from '../support/servers/scene.ts';
import { startWorld, type World } from '../support/servers/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});

const { aScene, ends, expectOneSeed } = scenery(() => world);

/** Several at a time: each waits most of the time. */
async function each<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

describe.concurrent('a cluster is created, with one seed,', () => {
  test.each(
    permutations<[string, Match, Fault]>(2, [
      ['when watch events of members are 2 s late', { verb: 'watch', resource: 'etcdmembers' }, late(2_000)],
      ['when watch events of members are 8 s late', { verb: 'watch', resource: 'etcdmembers' }, late(8_000)],
      ['when watch events of Pods are 2 s late', { verb: 'watch', resource: 'pods' }, late(2_000)],
      ['when watch events of clusters are 2 s late', { verb: 'watch', resource: 'etcdclusters' }, late(2_000)],
      ['when watch events of members are coalesced', { verb: 'watch', resource: 'etcdmembers' }, coalesced(500)],
    ]),
  )(
    '%s, and nothing is created twice',
    async (_what, match, fault) => {
      const scene = await aScene((proxy) => proxy.fault(match, fault));
      await world.createCluster(scene.namespace, 'db');
      await expectOneSeed(scene);
      // No reconcile has decided on a state from before its own last write: it would have tried to create something again.
      const creates = scene.proxy.calls.filter((call) => call.write && call.verb === 'create');
      expect(named(creates).filter((call) => !call.endsWith(' 201'))).toEqual([]);
      expect(named(creates).filter((call) => call === 'create etcdmembers 201').length).toBe(1);
      expect(named(creates).filter((call) => call === 'create pods 201').length).toBe(1);
      await alive(scene);
      await ends(scene);
    },
    90_000,
  );

  test.each(
    permutations<[string, Match, Fault]>(5, [
      ['every second write is a conflict', { write: true, every: 2 }, { do: 'answer', code: 409 }],
      ['every third write gets 429', { write: true, every: 3 }, { do: 'answer', code: 429, retryAfterSeconds: 1 }],
      ['every second write fails inside the server', { write: true, every: 2 }, { do: 'answer', code: 500 }],
      ['every third write breaks the connection', { write: true, every: 3 }, { do: 'reset', when: 'before' }],
      [
        'every third write succeeds, but its response is lost',
        { write: true, every: 3 },
        { do: 'reset', when: 'mid-response' },
      ],
      ['the creation of the seed hangs', { verb: 'create', resource: 'etcdmembers', nth: 1 }, { do: 'hang' }],
      [
        'the seed is created, but the response hangs',
        { verb: 'create', resource: 'etcdmembers', nth: 1 },
        { do: 'hang', forward: true },
      ],
      ['Events are not accepted', { resource: 'events' }, { do: 'hang' }],
      [
        'every resource version is too old at first',
        { verb: 'watch', resource: 'etcdmembers', nth: 2 },
        { do: 'watch', how: { is: 'gone' } },
      ],
    ]),
  )(
    'although %s',
    async (_what, match, fault) => {
      const scene = await aScene((proxy) => proxy.fault(match, fault));
      await world.createCluster(scene.namespace, 'db');
      await expectOneSeed(scene);
      await alive(scene);
      await ends(scene);
    },
    90_000,
  );
});

test.concurrent('when an operator is killed before or after any of its writes, its successor finishes the work', async () => {
  const reference = await aScene();
  await world.createCluster(reference.namespace, 'db');
  await expectOneSeed(reference);
  await world.condition(reference.namespace, 'db', 'Progressing', 'False', 'Reconciled');
  await eventually('every answer', () => writes(reference).every(({ code }) => code !== undefined) || undefined);
  const count = writes(reference).length;
  expect(named(writes(reference)).filter((call) => !/ 20[01]$/.test(call))).toEqual([]);
  await ends(reference);
  const points = Array.from({ length: count }, (_, i) => i + 1).flatMap((nth) => {
    const whens = nth % 2 === 0 ? (['before', 'after'] as const) : (['after', 'before'] as const);
    return permutations(1, whens).map((when) => ({ nth, when }));
  });
  await each(points, 4, async ({ nth, when }) => {
    const scene = await aScene((proxy, get) => {
      const run = () => get().operator.stop('SIGKILL');
      proxy.fault({ write: true, nth }, { do: 'interrupt', when, run });
    });
    await world.createCluster(scene.namespace, 'db');
    const first = scene.operator;
    const up = world.patiently(80_000).condition(scene.namespace, 'db', 'Available', 'True');
    await Promise.race([first.ended, up.then(() => pause(1_000))]);
    await first.stop('SIGKILL');
    scene.start();
    await expectOneSeed(scene).catch((error: unknown) => {
      throw new Error(`killed ${when} write ${nth}: ${named(writes(scene)).join(', ')}`, { cause: error });
    });
    await ends(scene);
  });
}, 600_000);

function late(ms: number): Fault {
  return { do: 'watch', how: { is: 'late', ms } };
}
function coalesced(ms: number): Fault {
  return { do: 'watch', how: { is: 'coalesced', ms } };
}

test('the operator waits for the time of Retry-After', async () => {
  const scene = await aScene((proxy) =>
    proxy.fault({ verb: 'create', resource: 'etcdmembers', nth: 1 }, { do: 'answer', code: 429, retryAfterSeconds: 2 }),
  );
  await world.createCluster(scene.namespace, 'db');
  const tries = () => scene.proxy.calls.filter((c) => c.verb === 'create' && c.resource === 'etcdmembers');
  const second = await eventually('the second try', () => tries()[1]);
  expect(second.at - (tries()[0]?.at ?? 0)).toBeGreaterThan(1_500);
  await expectOneSeed(scene);
  await ends(scene);
});

test('while connections break every second, clusters are created and nothing is listed again', async () => {
  const scene = await aScene();
  const lists = () =>
    scene.proxy.calls.filter((c) => c.verb === 'watch' && c.path.includes('sendInitialEvents')).length;
  await eventually('every first list', () => scene.operator.log().includes('"acting"') || undefined);
  const before = lists();
  const cutting = setInterval(() => scene.proxy.cut(), 1_000);
  const until = performance.now() + (process.env['DEV_TEST_ALL'] ? 60_000 : 15_000);
  for (let n = 0; performance.now() < until; n++) {
    await world.createCluster(scene.namespace, `db${n}`);
    await world.condition(scene.namespace, `db${n}`, 'Available', 'True');
  }
  clearInterval(cutting);
  expect(lists()).toBe(before);
  await alive(scene);
  await ends(scene);
}, 120_000);

test('the operator recovers when an API server is restarted without its watch history', async () => {
  const scene = await aScene();
  await world.createCluster(scene.namespace, 'db');
  await expectOneSeed(scene);
  const letGo = scene.proxy.fault({ verb: 'watch' }, { do: 'hold' });
  scene.proxy.cut(); // from here on the operator gets no events
  await world.createCluster(scene.namespace, 'second');
  await world.apiServer.kill();
  await compact(world.apiServer.etcdUrl);
  await world.apiServer.start();
  const before = scene.proxy.calls.length;
  letGo();
  // A client that has failed meanwhile, like the tests' kubelet, retries only after an equal backoff.
  await world.patiently(80_000).condition(scene.namespace, 'second', 'Available', 'True');
  await alive(scene);
  const since = scene.proxy.calls.slice(before);
  expect(since.some((c) => c.verb === 'watch' && c.path.includes('sendInitialEvents'))).toBe(true);
  await ends(scene);
}, 240_000);
