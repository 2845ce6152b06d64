/** Snapshots with real servers: the operator, Kubernetes with its Job controller, etcd, S3, and the agent as a process. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EtcdSnapshot, EtcdSnapshotSpec } from '../../src/api/etcd-snapshot.ts';
import { API_VERSION, etcdSnapshots } from '../../src/api/names.ts';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import type { Job, Pod } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { events, jobs, persistentVolumeClaims, pods, secrets, services } from '../../src/kube/resources.ts';
import type { Ended } from '../support/servers/agent-place.ts';
import type { AgentRuns } from '../support/servers/agent-runs.ts';
import { type Child, eventually } from '../support/servers/processes.ts';
import { BUCKET, startS3, type TestPlace } from '../support/servers/stores.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const snapshots: Resource<EtcdSnapshot> = etcdSnapshots;
const PATIENCE_MS = 180_000;
const timeout = 3 * PATIENCE_MS;
const IMAGE = '--operator-image=registry.example.com/etcd-operator:test';

let world: World;
let agents: AgentRuns;
let s3: TestPlace;
let operator: Child | undefined;

beforeAll(async () => {
  [world, s3] = await Promise.all([startWorld(), startS3()]);
  agents = world.runAgents();
}, timeout);
afterAll(async () => {
  await world?.stop();
  await s3?.close();
});
beforeEach(() => {
  operator = world.startOperator(IMAGE);
  agents.instead(() => undefined);
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-10_000) ?? '');
  await operator?.stop('SIGKILL');
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const give = (namespace: string, name: string, text: Readonly<Record<string, string>>) =>
  world.admin.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace },
    data: Object.fromEntries(Object.entries(text).map(([key, value]) => [key, base64(value)])),
  });
/** The credentials of the S3 server, as its users have them in a Secret. */
const keys = (of: TestPlace['secrets'] = s3.secrets): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(of).map(([path, value]) => [path.slice(MOUNTS.credentials.length + 1), value]));

function bucket(key: string, change: object = {}): EtcdSnapshotSpec['destination'] {
  if (s3.place.kind !== 's3') throw new Error('it is one');
  const { endpoint, forcePathStyle } = s3.place;
  return {
    s3: { endpoint, bucket: BUCKET, forcePathStyle, key, credentialsSecretRef: { name: 'keys' }, ...change },
  };
}
const take = (namespace: string, name: string, spec: Partial<EtcdSnapshotSpec> = {}): Promise<EtcdSnapshot> =>
  world.admin.create(snapshots, {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: { name, namespace },
    spec: { clusterRef: { name: 'db' }, destination: bucket(namespace), ...spec },
  });
const read = (namespace: string, name: string): Promise<EtcdSnapshot | undefined> =>
  world.admin.get(snapshots, { namespace, name });
const readyOf = (snapshot: EtcdSnapshot | undefined) => snapshot?.status?.conditions?.find((c) => c.type === 'Ready');

/** Waits for phase and reason. */
const becomes = (namespace: string, name: string, phase: string, reason: string): Promise<EtcdSnapshot> =>
  eventually(
    `${name} to be ${phase}, ${reason}`,
    async () => {
      const found = await read(namespace, name);
      return found?.status?.phase === phase && readyOf(found)?.reason === reason ? found : undefined;
    },
    { timeoutMs: PATIENCE_MS, seen: async () => (await read(namespace, name))?.status },
  );

async function running(spec: Parameters<World['createCluster']>[2] = {}): Promise<string> {
  const namespace = await world.namespace();
  await give(namespace, 'keys', keys());
  await world.createCluster(namespace, 'db', spec);
  await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
  return namespace;
}
/** Waits until the Events of all snapshots of a namespace are these: they are written after the status. */
const hasEvents = async (namespace: string, expected: readonly string[]): Promise<void> => {
  const found = async () =>
    (await world.list(events, namespace))
      .filter((e) => e.regarding?.kind === 'EtcdSnapshot')
      .map((e) => `${e.type} ${e.reason}`)
      .toSorted();
  await eventually('all Events', async () => (await found()).length >= expected.length || undefined);
  expect(await found()).toEqual(expected);
};
const jobOf = (namespace: string, snapshot: string): Promise<Job | undefined> =>
  world.admin.get(jobs, { namespace, name: `${snapshot}-snapshot` });
/** The operator ends a snapshot when its agent reports the result; the Job controller marks the Job as failed some time later. */
const failedJobOf = (namespace: string, snapshot: string): Promise<Job> =>
  eventually(
    `the Job of ${snapshot} to fail`,
    async () => {
      const job = await jobOf(namespace, snapshot);
      return job?.status?.conditions?.some((c) => c.type === 'Failed' && c.status === 'True') ? job : undefined;
    },
    { timeoutMs: PATIENCE_MS, seen: async () => (await jobOf(namespace, snapshot))?.status },
  );
const storedFile = (key: string): Buffer => readFileSync(join(s3.folder, BUCKET, key));
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const never = new Promise<Ended>(() => {});
const isLookup = (pod: Pod) => pod.spec?.containers[0]?.args?.[0] === 'lookup';
const isOf = (snapshot: string) => (pod: Pod) => pod.metadata.name?.startsWith(`${snapshot}-snapshot-`) === true;

describe('a snapshot', { timeout }, () => {
  test('is taken from a follower, and reports exactly what is stored', async () => {
    // On a busy machine another member would become leader before the snapshot is taken.
    const namespace = await running({ replicas: 3, options: { electionTimeoutMilliseconds: 20_000 } });
    const cluster = await eventually('a leader', async () => {
      const found = await world.admin.get(clusters, { namespace, name: 'db' });
      return found?.status?.leader === undefined ? undefined : found;
    });
    const asks = (await world.list(pods, namespace)).map(({ metadata: { name = '' } }) => ({
      endpoint: `http://${world.kubelet.addressOf(namespace, name)}:2379`,
      timeoutMs: 5_000,
    }));
    const [any = { endpoint: '', timeoutMs: 0 }] = asks;
    for (let i = 0; i < 20; i++)
      expect(await world.etcd.put(any, `key-${i}`, 'v'.repeat(1_000))).toMatchObject({ ok: true });
    for (const each of asks)
      await eventually(`all writes at ${each.endpoint}`, async () => {
        const status = await world.etcd.status(each);
        return (status.ok && status.value.revision > 20n) || undefined;
      });

    await take(namespace, 'one');
    const { status } = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    const bytes = storedFile(`${namespace}/one.db`);
    expect(status?.artifact).toMatchObject({
      uri: `s3://${BUCKET}/${namespace}/one.db`,
      sizeBytes: bytes.length,
      checksum: sha256(bytes),
      databaseBytes: bytes.length,
      totalKeys: 20,
      etcdVersion: '3.6.16',
      clusterID: cluster.status?.clusterID,
      encrypted: false,
    });
    expect(status?.artifact?.revision).toBeGreaterThanOrEqual(21);
    expect(status?.startTime).toBeDefined();
    expect(status?.completionTime).toBeDefined();
    const names = (await world.list(members, namespace)).map(({ metadata }) => metadata.name);
    expect(names).toContain(status?.artifact?.member);
    expect(status?.artifact?.member).not.toBe(cluster.status?.leader);
    await hasEvents(namespace, ['Normal SnapshotStored']);

    const agent = (await world.list(pods, namespace)).find(isOf('one'));
    const labels = Object.entries(agent?.metadata.labels ?? {});
    for (const { metadata, spec } of await world.list(services, namespace)) {
      const matches = Object.entries(spec?.selector ?? {}).every(([k, v]) =>
        labels.some(([l, w]) => l === k && w === v),
      );
      expect(matches, `Service ${metadata.name} leads to the agent`).toBe(false);
    }
  });

  test('of a cluster with mTLS and auth; compressed and encrypted; created before the cluster is bootstrapped', async () => {
    const namespace = await world.namespace();
    await give(namespace, 'root', { password: 'planted-password' });
    await give(namespace, 'seal', { key: Buffer.alloc(32, 7).toString('hex') });
    await give(namespace, 'keys', keys());
    const spec = { compression: 'Zstd', encryption: { keySecretRef: { name: 'seal' } } } as const;
    await world.createCluster(namespace, 'db', {
      tls: { client: { managed: {} }, peer: { managed: {} } },
      auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
    });
    await take(namespace, 'one', spec);
    const { status } = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    expect(status?.artifact).toMatchObject({
      uri: `s3://${BUCKET}/${namespace}/one.db.zst.enc`,
      encrypted: true,
      checksum: sha256(storedFile(`${namespace}/one.db.zst.enc`)),
    });
    const job = await jobOf(namespace, 'one');
    expect(JSON.stringify([job, status])).not.toContain('planted-password');
  });

  test.runIf(process.env['DEV_TEST_ALL'])('is stored on a volume, once there is one', async () => {
    const namespace = await running();
    await take(namespace, 'one', { destination: { pvc: { claimName: 'backups', subPath: 'a/b' } } });
    expect(readyOf(await becomes(namespace, 'one', 'Pending', 'VolumeClaimMissing'))?.message).toContain('backups');
    expect(await jobOf(namespace, 'one')).toBeUndefined();
    await world.admin.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'backups', namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const { status } = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    expect(status?.artifact?.uri).toBe('file:///snapshot/data/a/b/one.db');
  });

  test.runIf(process.env['DEV_TEST_ALL'])('waits for its Secret, and continues when a user creates it', async () => {
    const namespace = await running();
    await take(namespace, 'one', { destination: bucket(namespace, { credentialsSecretRef: { name: 'late' } }) });
    const waiting = await becomes(namespace, 'one', 'Pending', 'SecretMissing');
    expect(readyOf(waiting)?.message).toContain('Secret late does not exist: create it with AWS_ACCESS_KEY_ID');
    expect(await jobOf(namespace, 'one')).toBeUndefined();
    await give(namespace, 'late', keys());
    await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
  });
});

describe('a cluster that has lost its quorum', { timeout }, () => {
  test('is taken from a remaining member; and when none is reachable, that is reported within a minute', async () => {
    const namespace = await running({ replicas: 3 });
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
    world.kubelet.hold(true);
    try {
      const [survivor, ...lost] = await world.list(pods, namespace);
      const remove = ({ metadata: { name = '', uid = '' } }: Pod) =>
        world.admin.delete(pods, { namespace, name }, { uid });
      for (const pod of lost) await remove(pod);
      await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'False', 'QuorumLost');
      await take(namespace, 'last');
      const { status } = await becomes(namespace, 'last', 'Complete', 'SnapshotStored');
      expect(status?.artifact?.member).toBe(survivor?.metadata.name);

      if (survivor) await remove(survivor);
      await eventually('the last one to be deleted', async () => {
        const name = survivor?.metadata.name ?? '';
        return (await world.admin.get(pods, { namespace, name }))?.metadata.uid !== survivor?.metadata.uid || undefined;
      });
      await take(namespace, 'none');
      expect(readyOf(await becomes(namespace, 'none', 'Failed', 'NoMemberReachable'))?.message).toContain(
        `${survivor?.metadata.name}: its Pod is not running`,
      );
      expect(await jobOf(namespace, 'none')).toBeUndefined();
    } finally {
      world.kubelet.hold(false);
    }
  });
});

describe('what cannot become a snapshot', { timeout }, () => {
  test('fails with its first attempt where a retry cannot help: no bucket, no permission, a foreign object that is not overwritten', async () => {
    const namespace = await running();
    await give(namespace, 'wrong', keys(s3.wrongSecrets ?? {}));
    const foreign = join(s3.folder, BUCKET, namespace, 'taken.db');
    mkdirSync(join(s3.folder, BUCKET, namespace), { recursive: true });
    writeFileSync(foreign, 'a foreign object');
    await take(namespace, 'nowhere', { destination: bucket('x', { bucket: 'no-such-bucket' }) });
    await take(namespace, 'denied', { destination: bucket('x', { credentialsSecretRef: { name: 'wrong' } }) });
    await take(namespace, 'taken');
    const reasons = { nowhere: 'BucketNotFound', denied: 'AccessDenied', taken: 'ObjectExists' };
    for (const [name, reason] of Object.entries(reasons)) {
      await becomes(namespace, name, 'Failed', reason);
      expect((await failedJobOf(namespace, name)).status?.failed).toBe(1);
    }
    expect(readFileSync(foreign, 'utf8')).toBe('a foreign object');
    await hasEvents(namespace, ['Warning AccessDenied', 'Warning BucketNotFound', 'Warning ObjectExists']);
  });

  test('fails at once: a paused cluster, no cluster, a foreign Job, which is not changed', async () => {
    const namespace = await world.namespace();
    await world.createCluster(namespace, 'db', { replicas: 0 });
    await give(namespace, 'keys', keys());
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
    const { metadata } = await world.admin.create(jobs, {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'taken-snapshot', namespace },
      spec: { suspend: true, template },
    });
    await take(namespace, 'paused');
    await take(namespace, 'taken');
    await take(namespace, 'missing', { clusterRef: { name: 'other' } });
    await becomes(namespace, 'paused', 'Failed', 'ClusterParked');
    await becomes(namespace, 'missing', 'Failed', 'ClusterNotFound');
    const taken = await becomes(namespace, 'taken', 'Failed', 'NameConflict');
    expect(readyOf(taken)?.message).toContain('Job taken-snapshot exists and belongs to no controller');
    const after = await jobOf(namespace, 'taken');
    expect([after?.metadata.uid, after?.metadata.generation, after?.metadata.ownerReferences]).toEqual([
      metadata.uid,
      metadata.generation,
      undefined,
    ]);
  });

  test('fails without an image to take it with', async () => {
    await operator?.stop('SIGKILL');
    operator = world.startOperator();
    const namespace = await world.namespace();
    await take(namespace, 'one');
    await becomes(namespace, 'one', 'Failed', 'OperatorImageNotConfigured');
  });

  test('is not believed, when its agent reports something impossible', async () => {
    const namespace = await running();
    const artifact = { uri: `s3://${BUCKET}/elsewhere.db`, sizeBytes: 1, checksum: `sha256:${'a'.repeat(64)}` };
    const honest = { ...artifact, uri: `s3://${BUCKET}/${namespace}/padded.db` };
    const lies: Readonly<Record<string, string>> = {
      elsewhere: JSON.stringify({ ok: true, task: 'snapshot', artifact }),
      padded: JSON.stringify({ ok: true, task: 'snapshot', artifact: { ...honest, member: 'a'.repeat(1_000_000) } }),
      words: '{"ok":true,"task":"snapshot"',
    };
    agents.instead((pod) => {
      const lie = Object.keys(lies).find((name) => isOf(name)(pod));
      return lie === undefined ? undefined : Promise.resolve({ exitCode: 0, message: lies[lie] ?? '' });
    });
    for (const name of Object.keys(lies)) await take(namespace, name);
    for (const name of Object.keys(lies)) {
      const { status } = await becomes(namespace, name, 'Failed', 'ResultRefused');
      expect(status?.artifact).toBeUndefined();
    }
  });

  test('is lost when a user deletes its Job before it is stored, and is not taken again', async () => {
    const namespace = await running();
    agents.instead((pod) => (isOf('one')(pod) && !isLookup(pod) ? never : undefined));
    await take(namespace, 'one');
    await becomes(namespace, 'one', 'Started', 'JobRunning');
    const job = await jobOf(namespace, 'one');
    await world.admin.transport.json(`/apis/batch/v1/namespaces/${namespace}/jobs/one-snapshot`, {
      method: 'DELETE',
      body: { preconditions: { uid: job?.metadata.uid }, propagationPolicy: 'Background' },
    });
    await becomes(namespace, 'one', 'Failed', 'SnapshotJobLost');
  });

  test('is found in the store when its Job was deleted before the operator received its result', async () => {
    const namespace = await running();
    await take(namespace, 'one');
    const { status } = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    await world.admin.transport.json(`/apis/batch/v1/namespaces/${namespace}/jobs/one-snapshot`, {
      method: 'DELETE',
      body: { propagationPolicy: 'Background' },
    });
    await eventually('the Job to be deleted', async () => ((await jobOf(namespace, 'one')) ? undefined : true));
    // The status as it was while the Job ran.
    await world.admin.transport.json(
      `/apis/etcd-operator.cozystack.io/v1alpha2/namespaces/${namespace}/etcdsnapshots/one/status`,
      {
        method: 'PATCH',
        body: { status: { phase: 'Started', artifact: null, completionTime: null } },
        contentType: 'application/merge-patch+json',
      },
    );
    const found = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    expect(found.status?.artifact).toEqual(status?.artifact);
    const { spec } = (await jobOf(namespace, 'one')) ?? {};
    expect(spec?.template.spec?.containers[0]?.args).toEqual(['lookup']);
  });
});

describe('once and only once', { timeout }, () => {
  test('an operator that is killed after its Job was created, and before that was recorded, leaves one snapshot', async () => {
    const namespace = await running();
    await operator?.stop('SIGKILL');
    const proxy = await world.faultProxy();
    const killed = world.startOperator(IMAGE, ...proxy.flags);
    operator = killed;
    proxy.fault(
      { verb: 'create', resource: 'jobs' },
      { do: 'interrupt', when: 'after', run: () => killed.stop('SIGKILL') },
    );
    await take(namespace, 'one');
    const made = await eventually('the Job', () => jobOf(namespace, 'one'), { timeoutMs: PATIENCE_MS });
    await killed.ended;
    expect((await read(namespace, 'one'))?.status?.phase).not.toBe('Started');
    operator = world.startOperator(IMAGE);
    await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    expect((await jobOf(namespace, 'one'))?.metadata.uid).toBe(made.metadata.uid);
  });

  test('what an earlier operator has finished is not changed', async () => {
    const namespace = await running();
    await operator?.stop('SIGKILL');
    await take(namespace, 'old');
    const status = {
      phase: 'Complete',
      artifact: { uri: 's3://elsewhere/old.db', sizeBytes: 7, checksum: 'sha256:00' },
      conditions: [],
    };
    const before = await world.admin.patch(
      snapshots,
      { namespace, name: 'old' },
      { status },
      { subresource: 'status' },
    );
    operator = world.startOperator(IMAGE);
    await take(namespace, 'new');
    await becomes(namespace, 'new', 'Complete', 'SnapshotStored');
    const after = await read(namespace, 'old');
    expect(after?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
    expect(await jobOf(namespace, 'old')).toBeUndefined();
  });

  test('one that is deleted and created again at once is taken again', async () => {
    const namespace = await running();
    const first = await take(namespace, 'one');
    await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    await world.admin.delete(snapshots, { namespace, name: 'one' }, { uid: first.metadata.uid ?? '' });
    await take(namespace, 'one', { destination: bucket(`${namespace}-again`) });
    const { status } = await becomes(namespace, 'one', 'Complete', 'SnapshotStored');
    expect(status?.artifact?.uri).toBe(`s3://${BUCKET}/${namespace}-again/one.db`);
  });
});
