/** What a look at a snapshot sees, through models of the API server and of etcd. */
import { expect, test } from 'vitest';
import { aCluster, FORMED, NOW } from '../../../test/support/builders/builders.ts';
import {
  failingReads,
  hear,
  type ModelWorld,
  modelWorld,
  nameOf,
  podOf,
  runningCluster,
} from '../../../test/support/builders/ports.ts';
import { aJob, anAgent, aSnapshot, JOB_UID } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { CLUSTER_LABEL, etcdClusters, etcdSnapshots, JOB_NAME_LABEL } from '../../api/names.ts';
import type { Job, Pod, Secret } from '../../gen/kube.ts';
import type { KubeObject, Resource } from '../../kube/object.ts';
import { jobs, persistentVolumeClaims, pods, secrets } from '../../kube/resources.ts';
import { Store } from '../../kube/store.ts';
import { observe, type Silences, type SnapshotPorts } from './observe.ts';
import type { Observed } from './observed.ts';

const { signal } = new AbortController();

interface Around extends SnapshotPorts {
  readonly world: ModelWorld;
  readonly silences: Silences;
  readonly asked: readonly string[];
}

/** A world with the caches of a snapshot, which records what the server is asked for. */
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
    silences: new Map(),
    asked,
    snapshots: new Store<EtcdSnapshot>(etcdSnapshots, []),
    pods: new Store<Pod>(pods, [], [JOB_NAME_LABEL]),
    jobs: new Store<Job>(jobs, []),
  };
}

async function look(ports: Around, object: EtcdSnapshot = aSnapshot()): Promise<Observed> {
  hear(ports.snapshots, object);
  const seen = await observe(ports, ports.silences, 'ns/monday', signal, undefined);
  if (!seen) throw new Error('there is no such snapshot');
  return seen;
}

/** Of three voters; the caches of both know them. */
async function running(world = modelWorld()): Promise<Around> {
  const ports = around(world);
  await runningCluster(ports.world, 3);
  for (const n of [1, 2, 3]) hear(ports.pods, podOf(n));
  return ports;
}

const give = (ports: Around, name: string, ...keys: readonly string[]): Promise<Secret> =>
  ports.world.client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'ns' },
    data: Object.fromEntries(keys.map((key) => [key, 'eA=='])),
  });

test('of one that has ended, or goes, nothing is looked at', async () => {
  for (const object of [aSnapshot({ status: { phase: 'Complete' } }), aSnapshot({ deleting: true })]) {
    const ports = await running();
    await look(ports, object);
    expect(ports.asked).toEqual([]);
  }
});

test('a Job counts as missing only when the server says so', async () => {
  const ports = await running();
  expect((await look(ports)).job).toEqual({ is: 'absent' });
  const { uid: _, ...metadata } = aJob().metadata;
  await ports.world.client.create(jobs, { ...aJob(), metadata });
  expect((await look(ports)).job.is).toBe('ours');
});

test('a Job of another snapshot is foreign, and that of its predecessor is about to go', async () => {
  const ports = await running();
  hear(ports.jobs, aJob({}, 'another'));
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: true });
  const { ownerReferences: _, ...unowned } = aJob().metadata;
  hear(ports.jobs, { ...aJob(), metadata: unowned });
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: false });
  hear(ports.jobs, { ...aJob(), metadata: { ...unowned, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await look(ports)).toMatchObject({ job: { is: 'foreign' }, isLeaving: true });
});

test('once there is a Job, only its own Pods are looked at, the newest last; and nobody is asked for anything', async () => {
  const ports = await running();
  hear(ports.jobs, aJob());
  const stranger = anAgent(3);
  const [owner] = stranger.metadata.ownerReferences ?? [];
  if (!owner) throw new Error('it has an owner');
  hear(ports.pods, anAgent(2), anAgent(1), {
    ...stranger,
    metadata: { ...stranger.metadata, ownerReferences: [{ ...owner, uid: `not ${JOB_UID}` }] },
  });
  const seen = await look(ports);
  expect(seen.pods.map(({ metadata }) => metadata.name)).toEqual(['monday-snapshot-1', 'monday-snapshot-2']);
  expect([seen.cluster?.metadata.name, seen.members, ports.asked]).toEqual(['db', [], []]);
});

test('a cluster counts as missing only when the server says so', async () => {
  const ports = around();
  expect((await look(ports)).cluster).toBeUndefined();
  const { uid: _u, resourceVersion: _v, ...metadata } = aCluster().metadata;
  await ports.world.client.create(etcdClusters, { ...aCluster(), metadata });
  expect((await look(ports)).cluster?.metadata.name).toBe('db');
});

test('members are asked now, each by its address, and are to be dialled by their own names', async () => {
  const ports = await running();
  const { members } = await look(ports);
  expect(members.map(({ name, host, endpoint }) => [name, host, endpoint])).toEqual(
    [1, 2, 3]
      .map(nameOf)
      .toSorted()
      .map((name) => [name, `${name}.db.ns.svc`, `http://${name}.db.ns.svc:2379`]),
  );
  const says = members.map((m) => (m.says.is === 'answers' ? m.says : undefined));
  expect(says.filter((s) => s?.id === s?.leader)).toHaveLength(1);
  expect(says.every((s) => s !== undefined && !s.isLearner && !s.isCorrupt && s.applied > 0)).toBe(true);
});

test('whoever has no Pod, or one that goes or has ended, is not asked; and whoever speaks for another cluster is not heard', async () => {
  const ports = await running();
  const [ready] = [podOf(1)];
  const why = async (): Promise<string> => {
    const member = (await look(ports)).members.find(({ name }) => name === nameOf(1));
    return member?.says.is === 'silent' ? member.says.why : 'it answers';
  };
  expect(await why()).toBe('it answers');
  hear(ports.pods, { ...ready, metadata: { ...ready.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await why()).toBe('its Pod is being deleted');
  hear(ports.pods, podOf(1, { status: { phase: 'Failed' } }));
  expect(await why()).toBe('its Pod does not run');
  hear(ports.pods, { ...ready, metadata: { ...ready.metadata, ownerReferences: [] } });
  expect(await why()).toBe('it has no Pod');
  hear(ports.pods, ready);
  const [member] = ports.members
    .byIndex('ns', CLUSTER_LABEL, 'db')
    .filter(({ metadata }) => metadata.name === nameOf(1));
  if (!member) throw new Error('it is there');
  hear(ports.members, { ...member, metadata: { ...member.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  expect(await why()).toBe('the member is being deleted');
  hear(ports.members, member);
  const [cluster] = ports.clusters.all();
  if (!cluster) throw new Error('it is there');
  hear(ports.clusters, { ...cluster, status: FORMED });
  expect(await why()).toBe('a member of another cluster responds at its address');
});

test('how long nobody answers is remembered, until somebody does', async () => {
  const ports = await running();
  let now = NOW;
  const timed = { ...ports, now: () => now };
  const nodes = [...ports.world.model.nodes.values()];
  for (const node of nodes) ports.world.model.stop(node);
  expect((await look(timed)).silentSince).toBe(NOW);
  now += 7_000;
  expect((await look(timed)).silentSince).toBe(NOW);
  for (const node of nodes) ports.world.model.start(node, { initialCluster: '', state: 'existing' });
  ports.world.model.advance(5_000);
  expect((await look(timed)).silentSince).toBeUndefined();
  for (const node of nodes) ports.world.model.stop(node);
  expect((await look(timed)).silentSince).toBe(now);
});

test('what the spec names is looked for by name, and only that', async () => {
  const ports = await running();
  const reasons = async (object?: EtcdSnapshot) => (await look(ports, object)).lacks.map(({ message }) => message);
  expect(await reasons()).toEqual([expect.stringContaining('Secret keys is not there')]);
  await give(ports, 'keys', 'AWS_ACCESS_KEY_ID');
  expect(await reasons()).toEqual([expect.stringContaining('Secret keys lacks keys')]);
  const volume = aSnapshot({ spec: { destination: { pvc: { claimName: 'backups' } } } });
  expect(await reasons(volume)).toEqual(['PersistentVolumeClaim backups is not there: create it']);
  await ports.world.client.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'backups', namespace: 'ns' },
  });
  expect(await reasons(volume)).toEqual([]);
});

test('a reference that names nothing finds nothing, and asks for nothing', async () => {
  const ports = await running();
  expect((await look(ports, aSnapshot({ spec: { clusterRef: { name: '' } } }))).cluster).toBeUndefined();
  const destination = { s3: { endpoint: 'https://s3', bucket: 'b', credentialsSecretRef: { name: '' } } };
  const { lacks } = await look(ports, aSnapshot({ spec: { destination } }));
  expect(lacks).toMatchObject([{ reason: 'SecretMissing' }]);
  expect(ports.asked.filter((plural) => plural !== 'jobs')).toEqual([]);
});

test('of a parked cluster, nothing else is looked at', async () => {
  const ports = await running();
  const [cluster] = ports.clusters.all();
  if (!cluster) throw new Error('it is there');
  hear(ports.clusters, { ...cluster, spec: { ...cluster.spec, replicas: 0 } });
  const { members, lacks } = await look(ports);
  expect([members, lacks, ports.asked]).toEqual([[], [], ['jobs']]);
});

test('a Secret that cannot be read is waited for, and named', async () => {
  const ports = await running(modelWorld(failingReads(403, 'secrets')));
  const s3 = { endpoint: 'https://s3', bucket: 'b', credentialsSecretRef: { name: 'keys' } };
  const { lacks } = await look(ports, aSnapshot({ spec: { destination: { s3 } } }));
  expect(lacks).toMatchObject([{ reason: 'SecretUnreadable' }]);
  expect(lacks[0]?.message).toContain('Secret keys cannot be read: 403 no KMS provider');
});
