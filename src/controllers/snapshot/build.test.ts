/** The Job of a snapshot. */
import { describe, expect, test } from 'vitest';
import { aCluster, FORMED } from '../../../test/support/builders/builders.ts';
import { aSnapshot, aVoter, s3 } from '../../../test/support/builders/snapshot.ts';
import type { Sources } from '../../access/evaluate/view.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot, EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import { API_VERSION, CLUSTER_LABEL } from '../../api/names.ts';
import { TASK_VARIABLE, type Task } from '../../domain/agent-task.ts';
import type { Job } from '../../gen/kube.ts';
import { snapshotJob } from './build.ts';

const image = 'registry.example.com/etcd-operator:v1';
const job = (
  spec: Partial<EtcdSnapshotSpec> = {},
  sources: Sources = {},
  ofCluster: Partial<EtcdClusterSpec> = {},
  object: EtcdSnapshot = aSnapshot({ spec }),
): Job =>
  snapshotJob({ object, cluster: aCluster({ spec: ofCluster, status: FORMED }), sources, image, member: aVoter(2) });

const containerOf = (made: Job) => made.spec?.template.spec?.containers[0];
const taskOf = (made: Job): Task =>
  JSON.parse(containerOf(made)?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '') as Task;
/** The Job with its task parsed. */
const whole = (made: Job) => ({ ...made, task: taskOf(made) });

test('a large database has a later deadline, and the agent always ends before the Job is stopped', () => {
  const large = { object: aSnapshot(), cluster: aCluster({ status: FORMED }), sources: {}, image: 'i' };
  const times = [0, 8 * 2 ** 30].map((databaseBytes) => {
    const made = snapshotJob({ ...large, member: aVoter(2, { databaseBytes }) });
    return [made.spec?.activeDeadlineSeconds, taskOf(made)];
  });
  expect(times).toMatchObject([
    [1_800, { deadlineSeconds: 1_500 }],
    [9_992, { deadlineSeconds: 9_692 }],
  ]);
});

test('the agent knows the other members, and may keep on the disk of the node what a slow store has not taken yet', () => {
  const at = { object: aSnapshot(), cluster: aCluster({ status: FORMED }), sources: { ca: 'a' }, image: 'i' };
  const member = aVoter(2, { databaseBytes: 1000 * 2 ** 20 });
  const made = snapshotJob({ ...at, member, others: [aVoter(3)] });
  const tls = { client: false };
  expect(taskOf(made)).toMatchObject({
    from: { member: 'db-2', tls: { ...tls, serverName: aVoter(2).host } },
    others: [{ member: 'db-3', endpoint: aVoter(3).endpoint, tls: { ...tls, serverName: aVoter(3).host } }],
    spoolBytes: (1100 + 64) * 2 ** 20,
  });
  expect(made.spec?.template.spec?.volumes).toContainEqual({ name: 'spool', emptyDir: { sizeLimit: '1228Mi' } });
  expect(containerOf(made)?.volumeMounts).toContainEqual({ name: 'spool', mountPath: '/spool' });
});

test('the memory of the agent follows the parts of its upload, and the amounts of the spec replace it', () => {
  const memoryFor = (databaseBytes: number, spec: Partial<EtcdSnapshotSpec> = {}) => {
    const cluster = aCluster({ status: FORMED });
    const member = aVoter(2, { databaseBytes });
    return containerOf(snapshotJob({ object: aSnapshot({ spec }), cluster, sources: {}, image, member }))?.resources;
  };
  const requests = { cpu: '50m', memory: '64Mi' };
  expect(memoryFor(8 * 2 ** 30)).toEqual({ requests, limits: { memory: '256Mi' } });
  expect(memoryFor(150 * 2 ** 30)).toEqual({ requests, limits: { memory: '284Mi' } });
  const resources = { requests: { cpu: '1' }, limits: { memory: '1Gi' } };
  expect(memoryFor(0, { resources })).toEqual({ requests: { ...requests, cpu: '1' }, limits: { memory: '1Gi' } });
});

describe('the whole Job', () => {
  test('of a plain cluster, to S3', () => {
    expect(whole(job())).toMatchSnapshot();
  });
  test('of a cluster with TLS, to a PVC', () => {
    const destination = { pvc: { claimName: 'backups', subPath: 'prod' } };
    expect(whole(job({ destination }, { ca: 'db-server-mounted' }))).toMatchSnapshot();
  });
  test('of a cluster with mTLS and auth; compressed and encrypted, to S3 with all options', () => {
    const destination = {
      s3: {
        ...s3,
        caSecretRef: { name: 's3-ca' },
        region: 'eu-west-1',
        forcePathStyle: true,
        serverSideEncryption: { algorithm: 'aws:kms', kmsKeyId: 'k' },
        checksums: 'WhenSupported',
      },
    } as const;
    const spec = { destination, compression: 'Zstd', encryption: { keySecretRef: { name: 'seal' } } } as const;
    const sources = { ca: 'db-server-mounted', pair: 'db-operator-mounted', root: 'db-root-applied' };
    expect(whole(job(spec, sources))).toMatchSnapshot();
  });
  test('to Google', () => {
    expect(
      whole(job({ destination: { gcs: { bucket: 'b', credentialsSecretRef: { name: 'g' } } } })),
    ).toMatchSnapshot();
  });
  test('to Azure, with the cloud identity of the ServiceAccount', () => {
    const destination = { azure: { container: 'c', account: 'a', serviceAccountName: 'backup' } };
    expect(whole(job({ destination }))).toMatchSnapshot();
  });
});

test('it has the placement and the image pull Secrets of members', () => {
  const toleration = { key: 'etcd', operator: 'Exists' } as const;
  const placed = {
    tolerations: [toleration],
    nodeSelector: { disk: 'fast' },
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 'pull' }],
    affinity: { podAntiAffinity: {} },
  };
  const spec = job({}, {}, placed).spec?.template.spec;
  expect(spec).toMatchObject({
    tolerations: [toleration],
    nodeSelector: { disk: 'fast' },
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 'pull' }],
  });
  expect(spec?.affinity).toBeUndefined();
});

test('no Service of the cluster selects it', () => {
  const { metadata, spec } = job();
  for (const labels of [metadata.labels, spec?.template.metadata?.labels])
    expect(Object.keys(labels ?? {})).not.toContain(CLUSTER_LABEL);
});

test('with the layout ByCluster, the task has a folder of the namespace and the cluster', () => {
  expect(taskOf(job({ layout: 'ByCluster' }))).toMatchObject({ prefix: 'prod', folder: 'ns/db' });
  expect(taskOf(job({ layout: 'Flat' }))).not.toHaveProperty('folder');
});

test('the task names the schedule of a snapshot, and no other owner', () => {
  const owned = (kind: string): EtcdSnapshot => {
    const made = aSnapshot();
    const owner = { apiVersion: API_VERSION, kind, name: 'nightly', uid: 'u', controller: true };
    return { ...made, metadata: { ...made.metadata, ownerReferences: [owner] } };
  };
  expect(taskOf(job({}, {}, {}, owned('EtcdSnapshotSchedule')))).toMatchObject({
    schedule: { name: 'nightly', uid: 'u' },
  });
  expect(taskOf(job({}, {}, {}, owned('Something')))).not.toHaveProperty('schedule');
});
