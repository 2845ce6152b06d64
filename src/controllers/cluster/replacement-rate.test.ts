/** A cause that many clusters share must not take the volumes of all of them. */
import { Registry } from 'prom-client';
import { afterEach, expect, test } from 'vitest';
import { ModelApiServer } from '../../../test/sim/model/kube.ts';
import { NOW } from '../../../test/support/builders/builders.ts';
import { at, type Is, lost, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { modelWorld } from '../../../test/support/builders/ports.ts';
import { eventually } from '../../../test/support/servers/processes.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { type EtcdMember, EVIDENCE } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, etcdClusters, etcdMembers } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { keyOf, type Resource } from '../../kube/object.ts';
import { ALL_NAMESPACES, Store } from '../../kube/store.ts';
import { watch } from '../../kube/watcher.ts';
import { systemClock } from '../../runtime/clock.ts';
import { Controller, type Reconciler } from '../../runtime/controller.ts';
import { createLogger } from '../../runtime/log.ts';
import { createMetrics } from '../../runtime/metrics.ts';
import type { ClusterCall } from './calls.ts';
import { clusterReconciler, countReplacements } from './controller.ts';
import { decide } from './decide.ts';
import { ReplacementLedger } from './observe-replacements.ts';
import type { Gathered } from './observed.ts';
import { limitFor } from './replacement-rate.ts';

const HOUR = 60 * 60_000;
const judged: Is = { down: true, evidence: EVIDENCE.dataInvalid };
const FULL = { replacementRate: { used: 10, limit: 10, nextAt: NOW + 1_800_000 } };
const recentOf = (o: Gathered) => decide(o).latch?.repair?.recent;
const limited = (members: readonly Is[], more: Partial<Gathered> = {}): Gathered => ({
  ...world(members),
  ...FULL,
  ...more,
});
const patched = (o: Gathered, change: Partial<Gathered['members'][number]>): Gathered => ({
  ...o,
  members: o.members.map((m, i) => (i === 0 ? { ...m, ...change } : m)),
});

test.each([
  [10, 1, 10],
  [10, 500, 10],
  [10, 1_000, 20],
  [3, 1, 3],
  [0, 1_000, 0],
])('%i per hour with %i clusters: the limit is %i', (perHour, clusters, limit) => {
  expect(limitFor(perHour, clusters)).toBe(limit);
});

test('a replacement is recorded before its EtcdMember is deleted, beside the others of the last hour', () => {
  const recent = [
    { member: 'old', at: at(HOUR) },
    { member: 'other', at: at(HOUR - 1_000) },
  ];
  const status = { repair: { count: 1, last: at(HOUR - 1_000), generation: 1, recent } };
  const o = world([judged, up, up], { status });
  expect(stepsOf(o)).toEqual([`delete ${name(1)}`]);
  expect(recentOf(o)).toEqual([recent[1], { member: name(1), at: '2026-01-01T12:00:00Z' }]);
});

test('a second attempt to delete the same EtcdMember is no further replacement, and does not wait', () => {
  const repair = { count: 1, last: at(5_000), generation: 1, recent: [{ member: name(1), at: at(5_000) }] };
  const o = { ...world([judged, up, up], { status: { repair } }), ...FULL };
  expect([stepsOf(o), recentOf(o)]).toEqual([[`delete ${name(1)}`], [{ member: name(1), at: '2026-01-01T12:00:00Z' }]]);
});

test.each([EVIDENCE.dataInvalid, EVIDENCE.volumeFull, EVIDENCE.crashLooping, EVIDENCE.removed, EVIDENCE.nodeLost])(
  'at the limit a member that seems lost (%s) is not replaced, and the status says why and when',
  (evidence) => {
    const o = limited([{ down: true, evidence }, up, up]);
    const { status, events } = decide(o);
    expect(stepsOf(o)).toEqual([]);
    expect(findCondition(status.conditions, 'Degraded')).toMatchObject({
      status: 'True',
      reason: 'ReplacementRateLimited',
      message: expect.stringContaining(
        'replaced 10 members of all clusters in the last hour, and the limit is 10: failures in many clusters at once mostly have one cause, and the volumes may be intact. The next one is possible at 2026-01-01T12:30:00Z.',
      ),
    });
    expect(findCondition(status.conditions, 'Progressing')).toMatchObject({
      status: 'False',
      reason: 'ReplacementRateLimited',
    });
    expect(events).toContainEqual(expect.objectContaining({ type: 'Warning', reason: 'ReplacementRateLimited' }));
  },
);

test('below the limit it is replaced', () => {
  const replacementRate = { used: 9, limit: 10, nextAt: NOW };
  expect(stepsOf(limited([judged, up, up], { replacementRate }))).toEqual([`delete ${name(1)}`]);
});

test('where nothing may be replaced, no time is promised', () => {
  const o = limited([judged, up, up], { replacementRate: { used: 0, limit: 0, nextAt: NOW } });
  expect(decide(o).message).not.toContain('The next one');
});

test.each<[string, Gathered]>([
  ['its data was in memory', limited([{ ...judged, spec: { storage: { size: '1Gi', medium: 'Memory' } } }, up, up])],
  ['its PVC was deleted', limited([lost, up, up])],
  ['its volume is lost', limited([{ down: true, evidence: EVIDENCE.volumeLost }, up, up])],
  ['a user deletes its PVC', patched(limited([judged, up, up]), { pvc: 'terminating' })],
  [
    'its node was deleted or is out of service',
    patched(limited([{ down: true, evidence: EVIDENCE.nodeLost }, up, up]), { nodeGone: true }),
  ],
])('a member with nothing to discard is replaced at once, and does not count: %s', (_, o) => {
  expect(stepsOf(o)).toEqual([`delete ${name(1)}`]);
  expect(recentOf(o)).toBeUndefined();
});

test('a member whose data differs from that of the others is judged, too', () => {
  const members: readonly Is[] = [{ hash: 'a' }, { hash: 'a' }, { hash: 'b', alarm: 'CORRUPT' }];
  expect([stepsOf(world(members)), stepsOf(limited(members))]).toEqual([[`delete ${name(3)}`], []]);
});

test('a deleted node does not excuse what etcd logged about its data', () => {
  expect(stepsOf(patched(limited([judged, up, up]), { nodeGone: true }))).toEqual([]);
});

// Many clusters, each reconciled by the controller, whose members all fail in the same way at the same moment.

const clusters: Resource<EtcdCluster> = etcdClusters;
const members: Resource<EtcdMember> = etcdMembers;
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** `kinds`: the evidence of the first member of each cluster. */
async function aFleet(kinds: readonly string[]) {
  const server = new ModelApiServer();
  for (const [i, evidence] of kinds.entries()) {
    const { cluster, members: views } = world([{ down: true, evidence }, up, up]);
    const namespace = `ns-${i}`;
    const { uid: _u, resourceVersion: _v, ...metadata } = cluster.metadata;
    await server.create(clusters, { ...cluster, metadata: { ...metadata, namespace } });
    await server.patch(clusters, { namespace, name: 'db' }, { status: cluster.status }, { subresource: 'status' });
    const object = views[0]?.object as EtcdMember;
    await server.create(members, { ...object, metadata: { name: object.metadata.name ?? '', namespace } });
  }
  const left = (): number => server.peek(members).length;
  return { server, kinds, left, deleted: (): number => kinds.length - left() };
}

const until = (what: string, isSo: () => boolean): Promise<true> =>
  eventually(what, () => Promise.resolve(isSo() || undefined), { everyMs: 10 });

/** An operator that starts now, with its own caches and its own count. */
async function anOperator({ server, kinds }: Awaited<ReturnType<typeof aFleet>>, now: () => number) {
  const stop = new AbortController();
  const stores = { clusters: new Store(clusters, []), members: new Store(members, [], [CLUSTER_LABEL]) };
  for (const store of [stores.clusters, stores.members] as readonly Store<EtcdCluster | EtcdMember>[])
    void watch({
      client: server,
      resource: store.resource,
      signal: stop.signal,
      emit: (event) => store.apply(ALL_NAMESPACES, event),
      onError: () => undefined,
      sleep: () => Promise.resolve(),
      random: () => 0,
    });
  const replacements = new ReplacementLedger(stores.clusters, 10);
  const observed = new Set<string>();
  const reconciler: Reconciler<Gathered, EtcdClusterStatus, ClusterCall> = {
    ...clusterReconciler({ ...modelWorld(server), ...stores, replacements }),
    observe: async (key) => {
      const cluster = stores.clusters.get(key);
      observed.add(key);
      const [namespace = ''] = key.split('/');
      const evidence = kinds[Number(namespace.slice(3))] ?? '';
      const object = stores.members.get(`${namespace}/${name(1)}`);
      await Promise.resolve(); // as requests to etcd: all clusters are observed before the first one acts
      const replacementRate = replacements.rate(now(), cluster);
      if (!cluster || !object) return cluster && { ...world([up, up, up]), now: now(), cluster, replacementRate };
      const o = world([{ down: true, evidence }, up, up]);
      const { uid, resourceVersion } = object.metadata;
      const views = o.members.map((m, i) => {
        const metadata = { ...m.object.metadata, namespace, ...(i === 0 && { uid, resourceVersion }) };
        return { ...m, object: { ...m.object, metadata } };
      });
      return { ...o, now: now(), cluster, members: views, replacementRate };
    },
    decide: (o) => {
      const { upkeep: _, requeueAfterMs: _ms, ...plan } = decide(o); // there are no Services here, and time is the test's
      return plan;
    },
  };
  const controller = new Controller(reconciler, {
    client: server,
    recorder: { record: () => undefined },
    resources: new Map<string, Resource>([
      ['EtcdCluster', clusters],
      ['EtcdMember', members],
    ]),
    clock: { ...systemClock, now, random: () => 0 },
    log: createLogger('silent'),
    metrics: createMetrics(),
    stores: [stores.clusters, stores.members],
    signal: stop.signal,
  });
  stops.push(() => stop.abort());
  await until('the caches to be synced', () => stores.clusters.synced && stores.members.synced);
  const reconcileAll = (): void => {
    for (const cluster of stores.clusters.all()) controller.enqueue(keyOf(cluster));
  };
  reconcileAll();
  const waiting = (): number =>
    server
      .peek(clusters)
      .filter(({ status }) => findCondition(status?.conditions, 'Degraded')?.reason === 'ReplacementRateLimited')
      .length;
  return {
    stores,
    replacements,
    waiting,
    observed: () => observed.size,
    reconcileAll,
    stop: async (): Promise<void> => {
      await controller.stop();
      stop.abort();
    },
  };
}

test('a hundred clusters whose members all seem lost at once lose ten volumes in an hour, also when the operator restarts', async () => {
  const fleet = await aFleet(Array.from({ length: 100 }, () => EVIDENCE.crashLooping));
  let now = NOW;
  const first = await anOperator(fleet, () => now);
  await until('ninety clusters to wait', () => first.waiting() === 90);
  expect(fleet.deleted()).toBe(10);
  const registry = new Registry();
  countReplacements(registry, { ...first.stores, replacements: first.replacements, now: () => now });
  expect((await registry.metrics()).match(/^etcd_operator_replacements_\w+ \d+$/gm)).toEqual([
    'etcd_operator_replacements_last_hour 10',
    'etcd_operator_replacements_limit 10',
    'etcd_operator_replacements_waiting 90',
  ]);
  await first.stop();

  now += HOUR - 2_000;
  const second = await anOperator(fleet, () => now);
  await until('all clusters to be reconciled', () => second.observed() === 100);
  await second.stop();
  expect(fleet.deleted()).toBe(10);

  now += 3_000;
  const third = await anOperator(fleet, () => now);
  await until('ten more after an hour', () => fleet.deleted() === 20);
  third.reconcileAll();
  await until('the others to wait again', () => third.waiting() === 80);
  expect(fleet.deleted()).toBe(20);
}, 60_000);

test('what was claimed counts before the cache has it, and also when its cluster is deleted', () => {
  const all: EtcdCluster[] = ['a', 'b', 'c'].map((namespace) => {
    const { cluster } = world([up]);
    return { ...cluster, metadata: { ...cluster.metadata, namespace } };
  });
  const [a, b, c] = all as [EtcdCluster, EtcdCluster, EtcdCluster];
  const ledger = new ReplacementLedger({ all: () => all.values() }, 2);
  const latch = (ms: number) => ({
    repair: { count: 1, last: at(0), generation: 1, recent: [{ member: 'm', at: at(-ms) }] },
  });
  expect([ledger.claim(a, latch(0), NOW), ledger.claim(a, latch(5), NOW + 5), ledger.rate(NOW).used]).toEqual([
    true,
    true,
    1,
  ]);
  expect([ledger.claim(b, latch(10), NOW + 10), ledger.claim(c, latch(20), NOW + 20)]).toEqual([true, false]);
  expect(ledger.rate(NOW + 30, a).used, 'a was not recorded, and may try again').toBe(1);
  all.splice(0, 2);
  expect(ledger.rate(NOW + 30)).toEqual({ used: 2, limit: 2, nextAt: NOW + 5 + HOUR });
  expect(ledger.claim(c, undefined, NOW + 30)).toBe(true);
  const later = NOW + 5 + HOUR;
  expect([ledger.claim(c, latch(HOUR), later), ledger.rate(later).used]).toEqual([true, 2]);
  expect(ledger.claim(a, latch(HOUR), later), 'its claim of an hour ago is over').toBe(false);
});

test('a cluster that could not record its replacement may replace another member instead, and is not reconciled in a loop', () => {
  const { cluster } = world([up]);
  const ledger = new ReplacementLedger({ all: () => [cluster].values() }, 1);
  const latch = (member: string) => ({
    repair: { count: 1, last: at(0), generation: 1, recent: [{ member, at: at(0) }] },
  });
  expect([ledger.claim(cluster, latch('a'), NOW), ledger.rate(NOW, cluster).used]).toEqual([true, 0]);
  expect(ledger.claim(cluster, undefined, NOW), 'a plan without a replacement').toBe(true);
  expect([ledger.claim(cluster, latch('b'), NOW), ledger.rate(NOW).used]).toEqual([true, 1]);
});

test('a wall clock that jumps ahead by an hour allows no further replacements', () => {
  const { cluster } = world([up]);
  const repair = { count: 1, last: at(0), generation: 1, recent: [{ member: 'a', at: at(1_000) }] };
  const recorded = { ...cluster, status: { ...cluster.status, repair } };
  const latch = { repair: { ...repair, recent: [{ member: 'b', at: at(0) }] } };
  let aheadMs = 0;
  const ledger = new ReplacementLedger({ all: () => [recorded].values() }, 2, () => aheadMs);
  const other = { ...cluster, metadata: { ...cluster.metadata, uid: 'other' } };
  expect(ledger.claim(other, latch, NOW)).toBe(true);
  aheadMs = 2 * HOUR;
  expect(ledger.rate(NOW + aheadMs).used).toBe(2);
  expect(ledger.claim(cluster, { repair: { ...repair, recent: [{ member: 'c', at: at(0) }] } }, NOW + aheadMs)).toBe(
    false,
  );
});

test('members with nothing to discard are replaced beyond the limit', async () => {
  const kinds = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? EVIDENCE.crashLooping : EVIDENCE.dataLost));
  const fleet = await aFleet(kinds);
  const operator = await anOperator(fleet, () => NOW);
  await until('the twenty others and ten', () => fleet.deleted() === 30 && operator.waiting() === 10);
}, 60_000);
