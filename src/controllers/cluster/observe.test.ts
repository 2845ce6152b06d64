/** Observation of a cluster through models of the API server and of etcd. */

import { describe, expect, test } from 'vitest';
import { aCluster, aMember, aVolume } from '../../../test/support/builders/builders.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import {
  failingReads,
  type ModelWorld,
  member,
  modelWorld,
  nameOf,
  podOf,
  putInCache,
  runningCluster,
} from '../../../test/support/builders/ports.ts';
import type { Target } from '../../api/etcd-cluster-status.ts';
import { CLUSTER_LABEL, COMPONENT_LABEL, QUARANTINE_LABEL, REFERENCE_LABEL } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { OPEN } from '../../domain/tenancy.ts';
import { hexId } from '../../etcd/ids.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { podDisruptionBudgets, secrets, services } from '../../kube/resources.ts';
import { ALL_NAMESPACES } from '../../kube/store.ts';
import { NO_MEMORY } from '../../runtime/plan.ts';
import { clientService, headlessService } from './build.ts';
import { decide } from './decide.ts';
import { observe } from './observe.ts';
import type { Gathered } from './observed.ts';

const { signal } = new AbortController();

async function observed(world: ModelWorld): Promise<Gathered> {
  const found = await observe(world, 'ns/db', signal, NO_MEMORY);
  if (!found) throw new Error('there is no cluster');
  return found;
}
const selves = (o: Gathered) => o.members.map((m) => m.self);

test('a healthy cluster is observed completely', async () => {
  const world = modelWorld();
  const [first] = await runningCluster(world, 3);
  const o = await observed(world);
  expect(o.etcd).toMatchObject({ is: 'answers', clusterID: o.cluster.status?.clusterID });
  expect(o.etcd.is === 'answers' && o.etcd.members.length).toBe(3);
  const leader = hexId(first?.disk?.group.leader ?? 0n);
  expect(selves(o).map((self) => self?.leader)).toEqual([leader, leader, leader]);
});

test('a member without a quorum returns no member list and has no leader', async () => {
  const world = modelWorld();
  const [, ...others] = await runningCluster(world, 3);
  for (const other of others) world.model.stop(other);
  const o = await observed(world);
  expect(o.etcd.is).toBe('unreachable');
  expect(selves(o).map((self) => self && [self.leader])).toEqual([[undefined], undefined, undefined]);
});

test('an unreachable member does not keep the others from being observed', async () => {
  const world = modelWorld();
  const [first] = await runningCluster(world, 3);
  if (first) world.model.stop(first);
  world.model.advance(5_000);
  const o = await observed(world);
  expect([o.etcd.is, selves(o).map((self) => self !== undefined)]).toEqual(['answers', [false, true, true]]);
});

test('the response of a member of another cluster is ignored', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const ref = { namespace: 'ns', name: 'db' };
  await world.client.patch(world.clusters.resource, ref, { status: { clusterID: 'f00' } }, { subresource: 'status' });
  expect(selves(await observed(world))).toEqual([undefined]);
});

test('one member belongs to another cluster: the others are asked for the member list, and lost members are replaced', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  const listFrom = async (others: number) => {
    let asked = 0;
    const memberList: typeof world.etcd.memberList = async (ask) => {
      const answer = await world.etcd.memberList(ask);
      return answer.ok && asked++ < others ? { ...answer, value: { ...answer.value, clusterId: 0xf00n } } : answer;
    };
    const o = await observed({ ...world, etcd: { ...world.etcd, memberList } });
    return o.etcd.is === 'answers' && o.etcd.clusterID;
  };
  const ours = (await observed(world)).cluster.status?.clusterID;
  expect([await listFrom(1), await listFrom(2), await listFrom(3)]).toEqual([ours, ours, '0000000000000f00']);
});

test('a response with another member id than the recorded one does not count for that member', async () => {
  const world = modelWorld();
  const nodes = await runningCluster(world, 3);
  const [cluster] = world.clusters.all();
  const idOf = (n: number): string => hexId(nodes[n - 1]?.disk?.id ?? 0n);
  const recorded = (n: number, as: number) =>
    member(n, { status: { isVoter: true, memberID: idOf(as) } }, cluster?.metadata.uid);
  putInCache(world.members, recorded(1, 1), recorded(2, 2), recorded(3, 3));
  // The Pod of 1 has ended, and its address was reused by 3; the cache has not received that yet.
  putInCache(world.pods, podOf(1, { ready: true, status: { podIP: '10.0.0.3' } }));
  const { members } = await observed(world);
  const ids = Object.fromEntries(members.map((m) => [m.object.metadata.name, m.self?.id]));
  expect(ids).toEqual({ [nameOf(1)]: undefined, [nameOf(2)]: idOf(2), [nameOf(3)]: idOf(3) });
});

test('foreign EtcdMembers, Pods and Services in the cache are ignored', async () => {
  const world = modelWorld();
  await runningCluster(world, 2);
  const theirs = [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: 'x', controller: true }];
  const foreign = member(7);
  putInCache(world.members, { ...foreign, metadata: { ...foreign.metadata, ownerReferences: theirs } });
  const pod = podOf(2);
  putInCache(world.pods, { ...pod, metadata: { ...pod.metadata, ownerReferences: theirs } });
  const metadata = { name: 'db', namespace: 'ns' };
  await world.client.create(services, { apiVersion: 'v1', kind: 'Service', metadata });
  await world.client.create(podDisruptionBudgets, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata });
  const o = await observed(world);
  expect(Object.fromEntries(o.members.map((m) => [m.object.metadata.name, m.pod.is]))).toEqual({
    [nameOf(1)]: 'present',
    [nameOf(2)]: 'absent',
  });
  expect([o.services.headless.is, o.services.client.is, o.pdb.is]).toEqual(['foreign', 'absent', 'foreign']);
});

test('an ended Pod has no address', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  putInCache(world.pods, podOf(1, { status: { phase: 'Failed' } }));
  expect((await observed(world)).members[0]?.pod).not.toHaveProperty('ip');
});

test('a PersistentVolumeClaim that is being deleted is observed', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  const pvc = (n: number, more: object = {}): PersistentVolumeClaim => {
    const made = aVolume();
    return { ...made, metadata: { ...made.metadata, name: `data-${nameOf(n)}`, uid: `pvc-${n}`, ...more } };
  };
  putInCache(world.volumes, pvc(1));
  putInCache(world.volumes, pvc(2, { deletionTimestamp: '2026-01-01T00:00:00Z' }));
  const { members } = await observed(world);
  expect(Object.fromEntries(members.map((m) => [m.object.metadata.name, m.pvc]))).toEqual({
    [nameOf(1)]: 'present',
    [nameOf(2)]: 'terminating',
    [nameOf(3)]: undefined,
  });
});

test.each([
  ['unhealthyCluster: addLearner x', 1_000, 5],
  ['unhealthyCluster: addLearner x', 31_000, undefined],
  [undefined, 1_000, undefined],
])('a refusal of kind %s, %i ms ago, is one of all voters since %s', async (kind, ago, since) => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const { memory } = remembering('etcd refuses', { is: 'later', kind, since: 5, at: world.now() - ago });
  const o = await observe(world, 'ns/db', signal, memory);
  expect([o?.memory, o?.refusedSince]).toEqual([memory, since]);
});

test('maxLearners is taken from the command, and is one without the flag', async () => {
  const world = modelWorld();
  await runningCluster(world, 2);
  const pod = podOf(2);
  const command = ['etcd', '--max-learners=8'];
  putInCache(world.pods, { ...pod, spec: { containers: [{ name: 'etcd', image: 'i', command }] } });
  const { members } = await observed(world);
  const learners = members.map((m) => [m.object.metadata.name, m.pod.is === 'present' && m.pod.maxLearners]);
  expect(Object.fromEntries(learners)).toEqual({ [nameOf(1)]: 1, [nameOf(2)]: 8 });
});

test('an alarm belongs to the member that it names, and all members are asked for the hash at a revision that all have', async () => {
  const world = modelWorld();
  const [first, second, third] = await runningCluster(world, 3);
  if (!first || !second || !third?.disk) throw new Error('there are three');
  const ask = { endpoint: first.endpoint, timeoutMs: 1_000 };
  await world.etcd.put(ask, 'k', '1');
  second.stalled = true; // it does not receive the next writes
  await world.etcd.put(ask, 'k', '2');
  await world.etcd.maintenance.activate(ask, { memberId: third.disk.id, alarm: 'corrupt' });
  const o = await observed(world);
  const ids = o.etcd.is === 'answers' ? o.etcd.alarms : [];
  expect(ids).toEqual([{ id: hexId(third.disk.id), alarm: 'CORRUPT' }]);
  const named = o.members.map((m) => [m.object.metadata.name, m.self?.alarms]);
  expect(Object.fromEntries(named)).toEqual({ [nameOf(1)]: [], [nameOf(2)]: [], [nameOf(3)]: ['CORRUPT'] });
  const hashes = new Set(selves(o).map((self) => self?.hash));
  expect([hashes.size, hashes.has(undefined)]).toEqual([1, false]);
});

test('a seed of etcd 3.5 is asked for the cluster version, and only before others join', async () => {
  const world = modelWorld();
  const [seed] = await runningCluster(world, 1);
  if (!seed) throw new Error('there is one');
  await world.client.patch(world.clusters.resource, { namespace: 'ns', name: 'db' }, { spec: { replicas: 3 } });
  const { maintenance } = world.etcd;
  const downgrade: typeof maintenance.downgrade = async () => ({ ok: false, error: { kind: 'busy', message: 'no' } });
  const undecided = { ...world, etcd: { ...world.etcd, maintenance: { ...maintenance, downgrade } } };
  const unversioned = async (w: ModelWorld) => {
    const { etcd } = await observed(w);
    return etcd.is === 'answers' && etcd.unversioned === true;
  };
  expect([await unversioned(undecided), await unversioned(world)]).toEqual([false, false]);
  seed.version = '3.5.33';
  expect([await unversioned(undecided), await unversioned(world)]).toEqual([true, false]);
});

test('before a listed member counts as unknown, the API server is asked for its EtcdMember', async () => {
  const world = modelWorld();
  await runningCluster(world, 3);
  const [cluster] = world.clusters.all();
  const uncached = member(3, {}, cluster?.metadata.uid);
  world.members.apply(ALL_NAMESPACES, { type: 'delete', object: uncached });
  expect((await observed(world)).members).toHaveLength(2);
  const { uid: _, resourceVersion: _v, ...metadata } = uncached.metadata;
  await world.client.create(world.members.resource, { ...uncached, metadata });
  expect((await observed(world)).members.map(({ object }) => object.metadata.name)).toContain(nameOf(3));
});

test('a member whose etcd was restarted in its Pod is observed as restarted', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const container = { name: 'etcd', image: '', imageID: '', ready: true, restartCount: 1 };
  putInCache(world.pods, podOf(1, { ready: true, status: { containerStatuses: [container] } }));
  expect((await observed(world)).members[0]?.pod).toMatchObject({ restarted: true });
});

test('only PVCs of removed or replaced members that do not exist any more count as quarantined', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const pvc = (name: string, reason: string, more: object = {}, component = 'gone'): PersistentVolumeClaim => {
    const labels = { [CLUSTER_LABEL]: 'db', [COMPONENT_LABEL]: component, [QUARANTINE_LABEL]: reason };
    return { ...aVolume(), metadata: { ...aVolume().metadata, name, labels, ...more } };
  };
  putInCache(
    world.volumes,
    pvc('removed', 'member-removed'),
    pvc('replaced', 'member-replaced'),
    pvc('adopted', 'member-removed', { ownerReferences: aMember().metadata.ownerReferences }),
    pvc('still-in-use', 'member-replaced', {}, nameOf(1)),
    pvc('of-a-deleted-cluster', 'cluster-deleted'),
  );
  expect((await observed(world)).quarantined.map((c) => c.metadata.name)).toEqual(['removed', 'replaced']);
});

test('the time for which a Pod is not ready starts again when its node comes back, and is not measured while it is ready', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const states: (string | undefined)[] = [];
  const observedMs = (key: string, state: string | undefined) =>
    key.startsWith('Readiness') ? states.push(state) * 1_000 : 0;
  const unreadyFor = async () => (await observed({ ...world, observedMs })).members[0]?.unreadyForMs;
  expect([await unreadyFor(), states]).toEqual([undefined, [undefined]]);
  const nodeReadySince = (lastTransitionTime: string) => {
    const conditions = [{ type: 'Ready', status: 'True' as const, lastTransitionTime }];
    putInCache(world.nodes, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1', resourceVersion: lastTransitionTime.replaceAll(/\D/g, '') },
      status: { conditions },
    });
  };
  putInCache(world.pods, { ...podOf(1, { ready: false, status: {} }), spec: { containers: [], nodeName: 'n1' } });
  nodeReadySince('2026-01-01T11:00:00Z');
  await unreadyFor();
  nodeReadySince('2026-01-01T11:30:00Z');
  expect([await unreadyFor(), new Set(states).size]).toEqual([3_000, 3]);
});

test('the time of a seed starts again with the first run of its etcd and the first restart, and is not measured after the bootstrap', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cluster] = world.clusters.all();
  if (!cluster) throw new Error('there is one');
  putInCache(world.members, member(1, { spec: { bootstrap: true } }, cluster.metadata.uid));
  const states: (string | undefined)[] = [];
  const observedMs = (key: string, state: string | undefined) =>
    key.startsWith('Seed') ? states.push(state) * 1_000 : 0;
  const observedFor = async () => (await observed({ ...world, observedMs })).seedObservedMs;
  await observedFor();
  const { clusterID: _, ...status } = cluster.status ?? {};
  const ref = { namespace: 'ns', name: 'db' };
  await world.client.patch(world.clusters.resource, ref, { status: { clusterID: null } }, { subresource: 'status' });
  putInCache(world.clusters, { ...cluster, status });
  const started = (startedAt: string, restartCount = 0) => {
    const container = { name: 'etcd', image: '', imageID: '', ready: false, restartCount };
    const containerStatuses = [{ ...container, state: { running: { startedAt } } }];
    putInCache(world.pods, podOf(1, { status: { containerStatuses } }));
  };
  started('2026-01-01T11:00:00Z');
  await observedFor();
  started('2026-01-01T11:30:00Z');
  expect(await observedFor()).toBe(3_000);
  expect([states[0], new Set(states).size]).toEqual([undefined, 3]);
  started('2026-01-01T11:35:00Z', 1);
  await observedFor();
  started('2026-01-01T11:40:00Z', 2); // each of its runs is short, and the time goes on
  await observedFor();
  expect(new Set(states).size).toBe(4);
});

test('a paused cluster has no PodDisruptionBudget, and the API server is not asked for it', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cached] = world.clusters.all();
  if (!cached) throw new Error('there is one');
  putInCache(world.services, headlessService(cached), clientService(cached));
  const asked: string[] = [];
  const get: typeof world.client.get = (resource, ref) => {
    asked.push(`${resource.kind} ${ref.name}`);
    return world.client.get(resource, ref);
  };
  const recording = { ...world, client: { get } as unknown as typeof world.client };
  const requests = async (replicas: number): Promise<readonly string[]> => {
    const observed = { ...cached.status?.observed, replicas } as Target;
    putInCache(world.clusters, { ...cached, status: { ...cached.status, observed } });
    asked.length = 0;
    await observe(recording, 'ns/db', signal, NO_MEMORY);
    return asked.filter((one) => one.startsWith('EtcdCluster'));
  };
  expect([await requests(1), await requests(0)]).toEqual([['EtcdCluster db'], []]);
});

test('a deleted cluster is not observed, even if another one has the same name', async () => {
  const world = modelWorld();
  await runningCluster(world, 1);
  const [cached] = world.clusters.all();
  if (!cached) throw new Error('there is one');
  const before = { ...cached, metadata: { ...cached.metadata, uid: 'previous' } };
  const { status: _, ...withoutStatus } = before;
  putInCache(world.clusters, before);
  expect(await observe(world, 'ns/db', signal, NO_MEMORY)).toBeUndefined();
  putInCache(world.clusters, withoutStatus);
  expect(
    await observe(world, 'ns/db', signal, NO_MEMORY),
    'the API server is not asked about a cluster without a status',
  ).toBeDefined();
});

test.each([
  [500, 'a KMS provider is unreachable'],
  [403, 'a permission is missing'],
])(
  '%i, because %s: a Secret cannot be read, members are asked and the status is written all the same',
  async (code) => {
    const world = modelWorld(failingReads(code, 'secrets'));
    await runningCluster(world, 3);
    // Clients are served without TLS, so that the model of etcd is reached without any Secret.
    const spec = { replicas: 3, tls: { peer: { secretRef: { name: 'mine' } } } };
    putInCache(
      world.clusters,
      await world.client.patch(world.clusters.resource, { namespace: 'ns', name: 'db' }, { spec }),
    );
    const o = await observed(world);
    expect(selves(o).map((self) => self !== undefined)).toEqual([true, true, true]);
    expect(o.certificates.unreadable).toMatchObject({ judged: false, message: `${code} no KMS provider` });
    expect(findCondition(decide(o).status.conditions, 'CertificatesValid')).toMatchObject({
      status: 'Unknown',
      reason: 'SecretUnreadable',
    });
  },
);

test('a Service or a PodDisruptionBudget that cannot be read is unknown, and all else is observed', async () => {
  const world = modelWorld(failingReads(500, 'services', 'poddisruptionbudgets'));
  await runningCluster(world, 3);
  const o = await observed(world);
  const unknown = { is: 'unknown', message: '500 no KMS provider' };
  expect([o.services.headless, o.services.client, o.pdb]).toEqual([unknown, unknown, unknown]);
  expect([o.etcd.is, selves(o).length]).toEqual(['answers', 3]);
});

test('a cluster that cannot be read is not observed: it may be deleted', async () => {
  const world = modelWorld(failingReads(500, 'etcdclusters'));
  await runningCluster(world, 1);
  await expect(observed(world)).rejects.toThrow('no KMS provider');
});

describe('S2: with a label that referenced Secrets must carry', () => {
  const auth = { enabled: true, rootCredentialsSecretRef: { name: 'of-another-application' } };
  const tenancy = { ...OPEN, requireReferenceLabel: true };
  async function looked(labels: Readonly<Record<string, string>>) {
    const world = modelWorld();
    putInCache(world.clusters, aCluster({ spec: { auth } }));
    const metadata = { name: 'of-another-application', namespace: 'ns', labels };
    await world.client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata });
    return observe({ ...world, tenancy }, 'ns/db', signal, NO_MEMORY);
  }
  test('a cluster is not bootstrapped with a Secret of another application, and its status says why', async () => {
    const gathered = await looked({});
    expect(gathered?.notPermitted).toContain('Secret of-another-application does not carry the label');
    if (!gathered) return;
    const plan = decide(gathered);
    const available = findCondition(plan.status?.conditions, 'Available');
    expect([available?.status, available?.reason]).toEqual(['False', 'ReferenceNotPermitted']);
    expect([plan.rule, plan.steps, plan.requeueAfterMs === undefined]).toEqual(['blocked', [], false]);
  });
  test('nor with one that does not exist yet: its Pod would mount what another user creates under that name', async () => {
    const world = modelWorld();
    const s3 = { endpoint: 'https://s3.example.com', bucket: 'b', key: 'k', credentialsSecretRef: { name: 'later' } };
    putInCache(world.clusters, aCluster({ spec: { bootstrap: { restore: { source: { s3 } } } } }));
    const gathered = await observe({ ...world, tenancy }, 'ns/db', signal, NO_MEMORY);
    expect(gathered?.notPermitted).toContain('Secret later does not exist: create it, with the label');
  });
  test('a cluster is bootstrapped once the owner of the Secret has labelled it', async () => {
    expect((await looked({ [REFERENCE_LABEL]: 'true' }))?.notPermitted).toBeUndefined();
  });
});

test('annotations that the administrator denies are not in the spec that is applied, and a condition names them', async () => {
  const world = modelWorld();
  const additionalMetadata = { annotations: { 'external-dns.alpha.kubernetes.io/hostname': 'bank.example.com' } };
  putInCache(world.clusters, aCluster({ spec: { additionalMetadata } }));
  const tenancy = { ...OPEN, deniedMetadata: ['external-dns.alpha.kubernetes.io/*'] };
  const gathered = await observe({ ...world, tenancy }, 'ns/db', signal, NO_MEMORY);
  if (!gathered) throw new Error('there is one');
  const plan = decide(gathered);
  expect(JSON.stringify([plan.latch, plan.steps, plan.upkeep])).not.toContain('bank.example.com');
  expect(findCondition(plan.status?.conditions, 'FieldsIgnored')?.message).toContain(
    'the administrator denies these keys of additionalMetadata, and they are not copied: external-dns',
  );
});
