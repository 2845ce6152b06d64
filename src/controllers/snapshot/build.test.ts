/** The Job of a snapshot, whole. */
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
/** The Job with its task as a document. */
const whole = (made: Job) => ({ ...made, task: taskOf(made) });

test('a large database may take longer, and the agent always ends before it is stopped', () => {
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

describe('the whole Job', () => {
  test('of a plain cluster, to S3', () => {
    expect(whole(job())).toMatchSnapshot();
  });
  test('of a cluster with encryption, to a volume', () => {
    const destination = { pvc: { claimName: 'backups', subPath: 'prod' } };
    expect(whole(job({ destination }, { ca: 'db-server-mounted' }))).toMatchSnapshot();
  });
  test('of a cluster whose clients show a certificate and log in; compressed and encrypted, to S3 with all that it can have', () => {
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
  test('to Azure, as whoever its cloud says that the Pod is', () => {
    const destination = { azure: { container: 'c', account: 'a', serviceAccountName: 'backup' } };
    expect(whole(job({ destination }))).toMatchSnapshot();
  });
});

test('it runs where members may, and is pulled with what they are pulled with', () => {
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

test('no Service of the cluster leads to it', () => {
  const { metadata, spec } = job();
  for (const labels of [metadata.labels, spec?.template.metadata?.labels])
    expect(Object.keys(labels ?? {})).not.toContain(CLUSTER_LABEL);
});

test('a snapshot of a schedule says so, and one that merely belongs to somebody does not', () => {
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
