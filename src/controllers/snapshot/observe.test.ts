/** Observing a snapshot, with models of the API server and of etcd. */
import { describe, expect, test } from 'vitest';
import { aCluster, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import {
  failingReads,
  type ModelWorld,
  modelWorld,
  nameOf,
  podOf,
  putInCache,
  runningCluster,
} from '../../../test/support/builders/ports.ts';
import { aJob, anAgent, aSnapshot, JOB_UID } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot, EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import { CLUSTER_LABEL, etcdClusters, etcdSnapshots, JOB_NAME_LABEL, REFERENCE_LABEL } from '../../api/names.ts';
import { OPEN, type Tenancy } from '../../domain/tenancy.ts';
import type { Job, Pod, Secret } from '../../gen/kube.ts';
import type { KubeObject, Resource } from '../../kube/object.ts';
import { jobs, persistentVolumeClaims, pods, secrets } from '../../kube/resources.ts';
import { Store } from '../../kube/store.ts';
import { observe, type SnapshotPorts, type UnreachableSince } from './observe.ts';
import type { Observed } from './observed.ts';

const { signal } = new AbortController();

interface Around extends SnapshotPorts {
  readonly world: ModelWorld;
  readonly unreachableSince: UnreachableSince;
  readonly asked: readonly string[];
}

/** The caches of a snapshot, and a client that records its requests to the API server. */
function around(world = modelWorld()): Around {
  const asked: string[] = [];
  const get: typeof world.client.get = <T extends KubeObject>(resource: Resource<T>, ...rest: unknown[]) => {
    asked.push(resource.plural);
    return world.client.get(resource, ...(rest as [never, never]));
  };
  const client = new Proxy(world.client, {
    get: (target, name, self) => (name === 'get' ? get : Reflect.get(target, name, self)),
  });
  return {
    ...world,
    client,
    world,
    operatorImage: 'i',
    unreachableSince: new Map(),
    asked,
    snapshots: new Store<EtcdSnapshot>(etcdSnapshots, []),
    pods: new Store<Pod>(pods, [], [JOB_NAME_LABEL]),
    jobs: new Store<Job>(jobs, []),
  };
}

async function look(ports: Around, object: EtcdSnapshot = aSnapshot()): Promise<Observed> {
  putInCache(ports.snapshots, object);
  const seen = await observe(ports, ports.unreachableSince, 'ns/monday', signal, undefined);
  if (!seen) throw new Error('there is no such snapshot');
  return seen;
}

/** A cluster of three voters in the caches and in the etcd model. */
async function running(world = modelWorld()): Promise<Around> {
  const ports = around(world);
  await runningCluster(ports.world, 3);
  for (const n of [1, 2, 3]) putInCache(ports.pods, podOf(n));
  return ports;
}

const give = (ports: Around, name: string, ...keys: readonly string[]): Promise<Secret> =>
  ports.world.client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'ns' },
    data: Object.fromEntries(keys.map((key) => [key, 'eA=='])),
  });

test('nothing is read for a snapshot that has finished or is being deleted', async () => {
  for (const object of [aSnapshot({ status: { phase: 'Complete' } }), aSnapshot({ deleting: true })]) {
    const ports = await running();
    await look(ports, object);
    expect(ports.asked).toEqual([]);
  }
});

test('a Job counts as missing only when the API server returns 404', async () => {
  const ports = await running();
  expect((await look(ports)).job).toEqual({ is: 'absent' });
  const { uid: _, ...metadata } = aJob().metadata;
  await ports.world.client.create(jobs, { ...aJob(), metadata });
  expect((await look(ports)).job.is).toBe('ours');
});

test('a Job of another snapshot is foreign, and that of its predecessor is about to be deleted', async () => {
  const ports = await running();
  putInCache(ports.jobs, aJob({}, 'another'));
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: true });
  const { ownerReferences: _, ...unowned } = aJob().metadata;
  putInCache(ports.jobs, { ...aJob(), metadata: unowned });
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: false });
  putInCache(ports.jobs, { ...aJob(), metadata: { ...unowned, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: true });
});

test('once the Job exists, only its own Pods are observed, the newest last, and no member is asked', async () => {
  const ports = await running();
  putInCache(ports.jobs, aJob());
  const foreign = anAgent(3);
  const [owner] = foreign.metadata.ownerReferences ?? [];
  if (!owner) throw new Error('it has an owner');
  putInCache(ports.pods, anAgent(2), anAgent(1), {
    ...foreign,
    metadata: { ...foreign.metadata, ownerReferences: [{ ...owner, uid: `not ${JOB_UID}` }] },
  });
  const seen = await look(ports);
  expect(seen.pods.map(({ metadata }) => metadata.name)).toEqual(['monday-snapshot-1', 'monday-snapshot-2']);
  expect([seen.cluster?.metadata.name, seen.members, ports.asked]).toEqual(['db', [], []]);
});

test('a cluster counts as missing only when the API server returns 404', async () => {
  const ports = around();
  expect((await look(ports)).cluster).toBeUndefined();
  const { uid: _u, resourceVersion: _v, ...metadata } = aCluster().metadata;
  await ports.world.client.create(etcdClusters, { ...aCluster(), metadata });
  expect((await look(ports)).cluster?.metadata.name).toBe('db');
});

test('members are asked at their Pod IPs, and the agent dials them by their DNS names', async () => {
  const ports = await running();
  const { members } = await look(ports);
  expect(members.map(({ name, host, endpoint }) => [name, host, endpoint])).toEqual(
    [1, 2, 3]
      .map(nameOf)
      .toSorted()
      .map((name) => [name, `${name}.db.ns.svc`, `http://${name}.db.ns.svc:2379`]),
  );
  const says = members.map((m) => (m.report.is === 'answers' ? m.report : undefined));
  expect(says.filter((s) => s?.id === s?.leader)).toHaveLength(1);
  expect(says.every((s) => s !== undefined && !s.isLearner && !s.isCorrupt && s.applied > 0)).toBe(true);
});

test('a member without a running Pod is not asked, and a response with another cluster id is ignored', async () => {
  const ports = await running();
  const [ready] = [podOf(1)];
  const problem = async (): Promise<string> => {
    const member = (await look(ports)).members.find(({ name }) => name === nameOf(1));
    return member?.report.is === 'unreachable' ? member.report.message : 'it responds';
  };
  expect(await problem()).toBe('it responds');
  putInCache(ports.pods, { ...ready, metadata: { ...ready.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await problem()).toBe('its Pod is being deleted');
  putInCache(ports.pods, podOf(1, { status: { phase: 'Failed' } }));
  expect(await problem()).toBe('its Pod is not running');
  putInCache(ports.pods, { ...ready, metadata: { ...ready.metadata, ownerReferences: [] } });
  expect(await problem()).toBe('it has no Pod');
  putInCache(ports.pods, ready);
  const [member] = ports.members
    .byIndex('ns', CLUSTER_LABEL, 'db')
    .filter(({ metadata }) => metadata.name === nameOf(1));
  if (!member) throw new Error('it is there');
  putInCache(ports.members, { ...member, metadata: { ...member.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await problem()).toBe('the member is being deleted');
  putInCache(ports.members, member);
  const [cluster] = ports.clusters.all();
  if (!cluster) throw new Error('it is there');
  putInCache(ports.clusters, { ...cluster, status: FORMED });
  expect(await problem()).toBe('a member of another cluster responds at its address');
});

test('the time since when no member responds is kept until one does', async () => {
  const ports = await running();
  let now = NOW;
  const timed = { ...ports, now: () => now };
  const nodes = [...ports.world.model.nodes.values()];
  for (const node of nodes) ports.world.model.stop(node);
  expect((await look(timed)).unreachableSince).toBe(NOW);
  now += 7_000;
  expect((await look(timed)).unreachableSince).toBe(NOW);
  for (const node of nodes) ports.world.model.start(node, { initialCluster: '', state: 'existing' });
  ports.world.model.advance(5_000);
  expect((await look(timed)).unreachableSince).toBeUndefined();
  for (const node of nodes) ports.world.model.stop(node);
  expect((await look(timed)).unreachableSince).toBe(now);
});

test('only objects that the spec refers to are read, by name', async () => {
  const ports = await running();
  const reasons = async (object?: EtcdSnapshot) => (await look(ports, object)).lacks.map(({ message }) => message);
  expect(await reasons()).toEqual([expect.stringContaining('Secret keys does not exist')]);
  await give(ports, 'keys', 'AWS_ACCESS_KEY_ID');
  expect(await reasons()).toEqual([expect.stringContaining('Secret keys lacks keys')]);
  const volume = aSnapshot({ spec: { destination: { pvc: { claimName: 'backups' } } } });
  expect(await reasons(volume)).toEqual(['PersistentVolumeClaim backups does not exist: create it']);
  await ports.world.client.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'backups', namespace: 'ns' },
  });
  expect(await reasons(volume)).toEqual([]);
});

test('a reference with an empty name finds nothing, and sends no request', async () => {
  const ports = await running();
  expect((await look(ports, aSnapshot({ spec: { clusterRef: { name: '' } } }))).cluster).toBeUndefined();
  const destination = { s3: { endpoint: 'https://s3', bucket: 'b', credentialsSecretRef: { name: '' } } };
  const { lacks } = await look(ports, aSnapshot({ spec: { destination } }));
  expect(lacks).toMatchObject([{ reason: 'SecretMissing' }]);
  expect(ports.asked.filter((plural) => plural !== 'jobs')).toEqual([]);
});

test('nothing else is read for a paused cluster', async () => {
  const ports = await running();
  const [cluster] = ports.clusters.all();
  if (!cluster) throw new Error('it is there');
  const { observed: _, ...status } = cluster.status ?? {};
  putInCache(ports.clusters, { ...cluster, spec: { ...cluster.spec, replicas: 0 }, status });
  const { members, lacks } = await look(ports);
  expect([members, lacks, ports.asked]).toEqual([[], [], ['jobs']]);
});

test('a Secret that cannot be read is waited for, and reported by name', async () => {
  const ports = await running(modelWorld(failingReads(403, 'secrets')));
  const s3 = { endpoint: 'https://s3', bucket: 'b', credentialsSecretRef: { name: 'keys' } };
  const { lacks } = await look(ports, aSnapshot({ spec: { destination: { s3 } } }));
  expect(lacks).toMatchObject([{ reason: 'SecretUnreadable' }]);
  expect(lacks[0]?.message).toContain('Secret keys cannot be read: 403 no KMS provider');
});

describe('S2, S4: what the administrator does not permit', () => {
  const lacksOf = async (ports: Around, tenancy: Partial<Tenancy>, spec: Partial<EtcdSnapshotSpec> = {}) =>
    (await look({ ...ports, tenancy: { ...OPEN, ...tenancy } }, aSnapshot({ spec }))).lacks;
  const label = (ports: Around, resource: Resource, name: string) =>
    ports.world.client.patch(
      resource,
      { namespace: 'ns', name },
      { metadata: { labels: { [REFERENCE_LABEL]: 'true' } } },
    );

  test('a Secret without the label is not used, and with it is', async () => {
    const ports = await running();
    await give(ports, 'keys', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY');
    const [lack] = await lacksOf(ports, { requireReferenceLabel: true });
    expect(lack?.reason).toBe('ReferenceNotPermitted');
    expect(lack?.message).toContain(`Secret keys does not carry the label ${REFERENCE_LABEL}=true`);
    await label(ports, secrets, 'keys');
    expect(await lacksOf(ports, { requireReferenceLabel: true })).toEqual([]);
  });

  test('a PVC of another application without the label is not mounted', async () => {
    const ports = await running();
    const metadata = { name: 'postgres', namespace: 'ns' };
    await ports.world.client.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata,
    });
    const spec = { destination: { pvc: { claimName: 'postgres' } } };
    expect(await lacksOf(ports, { requireReferenceLabel: true }, spec)).toMatchObject([
      { reason: 'ReferenceNotPermitted' },
    ]);
    expect(await lacksOf(ports, {}, spec)).toEqual([]);
  });

  test('the cloud identity of the Pod is not used, and an endpoint that is not on the list neither', async () => {
    const ports = await running();
    await give(ports, 'keys', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY');
    const ambient = { destination: { s3: { endpoint: 'https://s3.example.com', bucket: 'b' } } };
    expect(await lacksOf(ports, {}, ambient)).toMatchObject([{ reason: 'ReferenceNotPermitted' }]);
    expect(await lacksOf(ports, { allowAmbientCredentials: true }, ambient)).toEqual([]);
    expect(await lacksOf(ports, { allowedStoreEndpoints: ['minio.local'] })).toMatchObject([
      { reason: 'ReferenceNotPermitted' },
    ]);
  });
});
