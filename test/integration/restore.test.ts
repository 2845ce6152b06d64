/** Restored clusters, with real servers: the seed's init containers run as processes before its etcd. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../src/api/etcd-snapshot.ts';
import { API_VERSION, etcdSnapshots, ROLE_LABEL, ROLE_VOTER } from '../../src/api/names.ts';
import type { Tls } from '../../src/api/tls.ts';
import { isPodReady } from '../../src/domain/pod.ts';
import type { Ask } from '../../src/etcd/client.ts';
import type { Pod } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { events, persistentVolumeClaims, pods, secrets } from '../../src/kube/resources.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { permutations } from '../support/permutations.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;
const PATIENCE_MS = 180_000;
const timeout = 4 * PATIENCE_MS;
const IMAGE = '--operator-image=registry.example.com/etcd-operator:test';

let world: World;
let operator: Child | undefined;

beforeAll(async () => {
  world = await startWorld();
  world.runAgents();
}, timeout);
afterAll(async () => {
  await world?.stop();
});
beforeEach(() => {
  operator = world.startOperator(IMAGE);
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-10_000) ?? '');
  await operator?.stop('SIGKILL');
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const give = (namespace: string, name: string, password: string) =>
  world.admin.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    data: { password: base64(password) },
  });
const condition = (namespace: string, name: string, type: string, status: string, reason?: string) =>
  world.patiently(PATIENCE_MS).condition(namespace, name, type, status, reason);
const messageOf = (cluster: EtcdCluster, type: string): string =>
  cluster.status?.conditions?.find((c) => c.type === type)?.message ?? '';

/** A namespace with a volume for snapshots. */
async function withVolume(): Promise<string> {
  const namespace = await world.namespace();
  await world.admin.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'backups', namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  return namespace;
}

/** The first member of a cluster, as a client sees it. */
async function client(namespace: string, cluster: string, password?: string): Promise<Ask> {
  const found = await world.list(pods, namespace);
  const pod = found.map(({ metadata }) => metadata.name ?? '').find((name) => name.startsWith(`${cluster}-`)) ?? '';
  const timeoutMs = 5_000;
  const address = world.kubelet.addressOf(namespace, pod);
  const trusted = await world.admin.get(secrets, { namespace, name: `${cluster}-server-mounted` });
  if (!trusted) return { endpoint: `http://${address}:2379`, timeoutMs };
  const given = await world.admin.get(secrets, { namespace, name: `${cluster}-client-tls` });
  const pair = given ? { cert: textOf(given, 'tls.crt'), key: textOf(given, 'tls.key') } : {};
  const tls = { ca: textOf(trusted, 'ca.crt'), ...pair, serverName: `${pod}.${cluster}.${namespace}.svc` };
  const passwords = password === undefined ? [] : [{ user: 'root', password }];
  const access = { cluster: `${namespace}/${pod}/${password}`, tls: () => tls, passwords: () => passwords };
  return { endpoint: `https://${address}:2379`, timeoutMs, access };
}

/** A cluster called `db` with a key, and a snapshot of it in the volume. */
async function snapshotOf(namespace: string, spec: Partial<EtcdClusterSpec>, password?: string): Promise<void> {
  await world.createCluster(namespace, 'db', spec);
  await condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
  await condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
  const written = await world.etcd.put(await client(namespace, 'db', password), 'greeting', 'hello');
  if (!written.ok) throw new Error(written.error.message);
  await world.admin.create(snapshots, {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: { name: 'nightly', namespace },
    spec: {
      clusterRef: { name: 'db' },
      destination: { pvc: { claimName: 'backups', subPath: 'a' } },
      compression: 'Zstd',
    },
  });
  const read = () => world.admin.get(snapshots, { namespace, name: 'nightly' });
  await eventually('the snapshot', async () => (await read())?.status?.phase === 'Complete' || undefined, {
    timeoutMs: PATIENCE_MS,
    seen: async () => (await read())?.status,
  });
}

const from = (subPath: string): Pick<EtcdClusterSpec, 'bootstrap'> => ({
  bootstrap: { restore: { source: { pvc: { claimName: 'backups', subPath } } } },
});
const SNAPSHOT = 'a/nightly.db.zst';

async function greeting(namespace: string, cluster: string, password?: string): Promise<string | undefined> {
  const answer = await world.etcd.get(await client(namespace, cluster, password), 'greeting');
  return answer.ok ? answer.value : answer.error.kind;
}
const seedPod = async (namespace: string, cluster: string): Promise<Pod | undefined> => {
  const seed = (await world.list(members, namespace)).find(
    ({ spec }) => spec.clusterName === cluster && spec.bootstrap === true,
  );
  return (await world.list(pods, namespace)).find(({ metadata }) => metadata.name === seed?.metadata.name);
};

describe('a restored cluster', { timeout }, () => {
  test('has its data, scales up, and its seed is then restarted without access to the store', async () => {
    const namespace = await withVolume();
    await snapshotOf(namespace, {});
    await world.createCluster(namespace, 'again', { ...from(SNAPSHOT), replicas: 3 });
    const restored = await condition(namespace, 'again', 'Restored', 'True', 'Restored');
    expect(messageOf(restored, 'Restored')).toContain('backups/a/nightly.db.zst');
    const before = await seedPod(namespace, 'again');
    expect(before?.spec?.initContainers?.map(({ name }) => name)).toEqual(['install-tools', 'restore']);
    expect(before?.spec?.volumes?.map(({ name }) => name)).toContain('snapshots');
    const source = await world.admin.get(clusters, { namespace, name: 'db' });
    expect(restored.status?.clusterID).not.toBe(source?.status?.clusterID);

    // Until the Pod is ready, the cluster may still report the previous status.
    const after = await eventually(
      'another Pod of the seed, which is ready',
      async () => {
        const pod = await seedPod(namespace, 'again');
        return pod && pod.metadata.uid !== before?.metadata.uid && isPodReady(pod) ? pod : undefined;
      },
      { timeoutMs: PATIENCE_MS, seen: async () => (await seedPod(namespace, 'again'))?.status },
    );
    expect(after.spec).not.toHaveProperty('initContainers');
    expect(after.spec?.volumes?.map(({ name }) => name)).not.toContain('snapshots');
    await condition(namespace, 'again', 'Available', 'True', 'QuorumHealthy');
    expect(await greeting(namespace, 'again'), ABOUT_DATA).toBe('hello');
  });

  test('is not restored a second time when its node restarts without its data: later writes would be lost without notice', async () => {
    const namespace = await withVolume();
    await snapshotOf(namespace, {});
    await world.createCluster(namespace, 'again', from(SNAPSHOT));
    await condition(namespace, 'again', 'Available', 'True', 'QuorumHealthy');
    await condition(namespace, 'again', 'Progressing', 'False', 'Reconciled');
    // No client reaches it before its Pod reports that the cluster exists.
    const name = await eventually('the seed to serve', async () => {
      const { labels, name: found } = (await seedPod(namespace, 'again'))?.metadata ?? {};
      return labels?.[ROLE_LABEL] === ROLE_VOTER ? found : undefined;
    });
    const written = await world.etcd.put(await client(namespace, 'again'), 'greeting', 'later');
    expect(written.ok).toBe(true);
    await world.kubelet.loseData(namespace, name, { rebooted: true });
    await condition(namespace, 'again', 'Available', 'False', 'NoReadableData');
    expect(await greeting(namespace, 'again')).toBe('unreachable');
  });

  test('reports why it cannot be restored, keeps its seed, and is restored when it can', async () => {
    const namespace = await withVolume();
    await world.createCluster(namespace, 'again', from(SNAPSHOT));
    const failed = await condition(namespace, 'again', 'Restored', 'False', 'ObjectNotFound');
    expect(messageOf(failed, 'Restored')).toContain('nightly.db.zst');
    await eventually(
      'an Event',
      async () => (await world.list(events, namespace)).some(({ reason }) => reason === 'ObjectNotFound') || undefined,
      { timeoutMs: PATIENCE_MS },
    );
    const [seed] = await world.list(members, namespace);
    await snapshotOf(namespace, {});
    await condition(namespace, 'again', 'Restored', 'True');
    await condition(namespace, 'again', 'Available', 'True', 'QuorumHealthy');
    expect(await greeting(namespace, 'again'), ABOUT_DATA).toBe('hello');
    const [same] = (await world.list(members, namespace)).filter(({ spec }) => spec.clusterName === 'again');
    expect(same?.metadata.uid).toBe(seed?.metadata.uid);
  });

  const ways: readonly [string, Tls][] = [
    ['with certificates of clients', { client: { managed: {} }, peer: { managed: {} } }],
    ['with those of servers only', { client: { managed: { clientCertificates: 'None' } } }],
  ];
  test.for(permutations(1, ways))('and its users, %s: the password is the one that root had', async ([, tls]) => {
    const namespace = await withVolume();
    const auth = (name: string) => ({ enabled: true, rootCredentialsSecretRef: { name } });
    await give(namespace, 'root', 'the-original');
    await give(namespace, 'another', 'something-else');
    await snapshotOf(namespace, { tls, auth: auth('root') }, 'the-original');

    await world.createCluster(namespace, 'right', { ...from(SNAPSHOT), tls, auth: auth('root') });
    await world.createCluster(namespace, 'wrong', { ...from(SNAPSHOT), tls, auth: auth('another') });
    await world.createCluster(namespace, 'none', { ...from(SNAPSHOT), tls });
    await condition(namespace, 'right', 'Restored', 'True');
    await condition(namespace, 'right', 'AuthEnabled', 'True', 'Enabled');
    await condition(namespace, 'right', 'Progressing', 'False', 'Reconciled');
    expect(await greeting(namespace, 'right', 'the-original'), ABOUT_DATA).toBe('hello');
    expect(['authRequired', 'permissionDenied']).toContain(await greeting(namespace, 'right'));
    await condition(namespace, 'wrong', 'Available', 'False', 'AuthCredentialsRejected');
    const refused = await condition(namespace, 'none', 'Restored', 'False', 'AuthRequired');
    expect(messageOf(refused, 'Restored')).toContain('Create the cluster with spec.auth');
  });
});

test('without an image for agents nothing is restored, and a later operator that has one restores it', {
  timeout,
}, async () => {
  await operator?.stop('SIGKILL');
  operator = world.startOperator();
  const namespace = await withVolume();
  await world.createCluster(namespace, 'again', from(SNAPSHOT));
  await condition(namespace, 'again', 'Restored', 'False', 'OperatorImageNotConfigured');
  expect(await world.list(members, namespace)).toEqual([]);
  await operator.stop('SIGKILL');
  operator = world.startOperator(IMAGE);
  await condition(namespace, 'again', 'Restored', 'False', 'ObjectNotFound');
});
