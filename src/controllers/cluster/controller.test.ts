/** Which changes enqueue a cluster. */
import { expect, test } from 'vitest';
import { aCluster, condition, FORMED } from '../../../test/support/builders/builders.ts';
import { member, modelWorld, podOf, putInCache } from '../../../test/support/builders/ports.ts';
import { aSchedule } from '../../../test/support/builders/schedules.ts';
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { API_VERSION, CERTIFICATE_NAME_ANNOTATION, CLUSTER_LABEL, QUARANTINE_LABEL } from '../../api/names.ts';
import type { Node, Pod, PodDisruptionBudget } from '../../gen/kube.ts';
import { secrets } from '../../kube/resources.ts';
import { isComplete, wireCluster } from './controller.ts';

function aWorld() {
  const world = modelWorld();
  const priorities: (string | undefined)[] = [];
  wireCluster(world, (_key, reason) => priorities.push(reason));
  const enqueued = (): number => priorities.splice(0).length;
  return { ...world, enqueued, priorities };
}

const labelled = (pod: Pod, labels: object, status: object = {}): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, resourceVersion: '9', labels: { ...pod.metadata.labels, ...labels } },
  status: { ...pod.status, ...status },
});

test('the status of a Pod enqueues its cluster, its labels do not', () => {
  const { pods, enqueued } = aWorld();
  const pod = podOf(1);
  putInCache(pods, pod);
  expect(enqueued()).toBeGreaterThan(0);
  putInCache(pods, labelled(pod, { role: 'voter' }));
  expect(enqueued()).toBe(0);
  putInCache(pods, labelled(pod, { role: 'voter' }, { phase: 'Failed' }));
  expect(enqueued()).toBeGreaterThan(0);
  pods.apply('', { type: 'delete', object: pod });
  expect(enqueued()).toBeGreaterThan(0);
});

test('the spec of a PodDisruptionBudget enqueues its cluster, its status does not', () => {
  const { pdbs, enqueued } = aWorld();
  const metadata = { namespace: 'ns', name: 'db', uid: 'budget', labels: { [CLUSTER_LABEL]: 'db' } };
  const pdb = (minAvailable: number, healthy: number, version: string): PodDisruptionBudget => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { ...metadata, resourceVersion: version },
    spec: { minAvailable },
    status: { currentHealthy: healthy, desiredHealthy: 2, disruptionsAllowed: 0, expectedPods: 3 },
  });
  putInCache(pdbs, pdb(2, 0, '1'));
  expect(enqueued()).toBeGreaterThan(0);
  putInCache(pdbs, pdb(2, 3, '2'));
  expect(enqueued()).toBe(0);
  putInCache(pdbs, pdb(1, 3, '3'));
  expect(enqueued()).toBeGreaterThan(0);
});

test('the end of a snapshot and of its stream enqueue its cluster, the message of its condition does not', () => {
  const { snapshots, enqueued } = aWorld();
  const snapshot = (status: EtcdSnapshotStatus, resourceVersion: string): EtcdSnapshot => ({
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: { namespace: 'ns', name: 'nightly', uid: 'snapshot', resourceVersion },
    spec: { clusterRef: { name: 'db' }, destination: {} },
    status,
  });
  const streams: EtcdSnapshotStatus = { phase: 'Started', streamsFrom: ['db-1'] };
  const conditions = [condition('Ready', 'False', 'JobRunning', 'uploading')];
  putInCache(snapshots, snapshot(streams, '1'));
  expect(enqueued()).toBe(1);
  putInCache(snapshots, snapshot({ ...streams, conditions }, '2'));
  expect(enqueued()).toBe(0);
  putInCache(snapshots, snapshot({ phase: 'Started', conditions }, '3'));
  expect(enqueued()).toBe(1);
  const complete = snapshot({ phase: 'Complete', conditions }, '4');
  putInCache(snapshots, complete);
  expect(enqueued()).toBe(1);
  snapshots.apply('', { type: 'delete', object: complete });
  expect(enqueued()).toBe(0);
  putInCache(snapshots, snapshot(streams, '5'));
  enqueued();
  snapshots.apply('', { type: 'delete', object: snapshot(streams, '6') });
  expect(enqueued()).toBe(1);
});

test('the deletion of a PVC enqueues its cluster, its creation does not', () => {
  const { volumes, enqueued } = aWorld();
  const pvc = (metadata: object) => ({
    apiVersion: 'v1' as const,
    kind: 'PersistentVolumeClaim' as const,
    metadata: { namespace: 'ns', name: 'data-db', labels: { [CLUSTER_LABEL]: 'db' }, ...metadata },
  });
  putInCache(volumes, pvc({ resourceVersion: '1' }));
  putInCache(volumes, pvc({ resourceVersion: '2', annotations: { bound: 'yes' } }));
  expect(enqueued()).toBe(0);
  putInCache(volumes, pvc({ resourceVersion: '3', deletionTimestamp: 'now' }));
  expect(enqueued()).toBe(1);
});

test('a PVC whose labels come back while it is being deleted enqueues its cluster, and so does the start or end of its quarantine', () => {
  const { volumes, enqueued } = aWorld();
  const pvc = (resourceVersion: string, more: object, labels: object = {}) => ({
    apiVersion: 'v1' as const,
    kind: 'PersistentVolumeClaim' as const,
    metadata: {
      namespace: 'ns',
      name: 'data-db',
      labels: { [CLUSTER_LABEL]: 'db', ...labels },
      resourceVersion,
      ...more,
    },
  });
  putInCache(volumes, pvc('1', { deletionTimestamp: 'now' }));
  expect(enqueued()).toBe(1);
  putInCache(volumes, pvc('1', { name: 'data-db-2' }));
  expect(enqueued()).toBe(0);
  putInCache(volumes, pvc('2', { name: 'data-db-2' }, { [QUARANTINE_LABEL]: 'member-removed' }));
  expect(enqueued()).toBe(1);
  putInCache(volumes, pvc('3', { name: 'data-db-2' }));
  expect(enqueued()).toBe(1);
});

test('a node that is cordoned enqueues the clusters that have a Pod on it; its heartbeats and other nodes do not', () => {
  const { nodes, pods, enqueued } = aWorld();
  const pod = podOf(1);
  putInCache(pods, { ...pod, spec: { containers: [], nodeName: 'n1' } });
  enqueued();
  const node = (name: string, resourceVersion: string, unschedulable: boolean): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, resourceVersion },
    spec: { unschedulable },
  });
  putInCache(nodes, node('n1', '1', false), node('n1', '2', false), node('n2', '3', true));
  expect(enqueued()).toBe(0);
  putInCache(nodes, node('n1', '4', true));
  expect(enqueued()).toBe(1);
  putInCache(nodes, node('n1', '5', true), node('n1', '6', false));
  expect(enqueued()).toBe(0);
});

test('a Pod that is being deleted enqueues its cluster', () => {
  const { pods, enqueued } = aWorld();
  const pod = podOf(1);
  putInCache(pods, pod);
  enqueued();
  putInCache(pods, { ...pod, metadata: { ...pod.metadata, resourceVersion: '9', deletionTimestamp: 'now' } });
  expect(enqueued()).toBeGreaterThan(0);
});

test('every change of an EtcdMember enqueues its cluster', () => {
  const { members, enqueued } = aWorld();
  putInCache(members, member(1));
  expect(enqueued()).toBeGreaterThan(0);
  putInCache(members, member(1, { status: { isVoter: true } }));
  expect(enqueued()).toBeGreaterThan(0);
});

test('a new cluster gets low priority', () => {
  const { clusters, priorities } = aWorld();
  putInCache(clusters, aCluster());
  expect(priorities.splice(0)).toEqual(['low']);
  putInCache(clusters, aCluster({ status: { readyMembers: 0 } }));
  expect(priorities.splice(0)).toEqual(['normal']);
});

test('a Certificate and the installation of cert-manager enqueue the cluster, and its Secrets are read again', async () => {
  const { certificates, clusters, client, credentials, enqueued } = aWorld();
  const issuerRef = { name: 'i' };
  const cluster = aCluster({ spec: { tls: { peer: { certManager: { issuerRef } } } }, status: FORMED });
  putInCache(clusters, cluster, { ...aCluster(), metadata: { namespace: 'ns', name: 'plain' } });
  enqueued();
  certificates.apply('', { type: 'synced', resourceVersion: '1' });
  expect(enqueued()).toBe(1);
  const found = async () => (await credentials.view(cluster)).certificates[0]?.findings[0]?.is;
  expect(await found()).toBe('secretMissing');
  await client.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'ns', name: 'db-peer-tls', annotations: { [CERTIFICATE_NAME_ANNOTATION]: 'db-peer' } },
    data: {},
  });
  expect(await found()).toBe('secretMissing');
  const labels = { [CLUSTER_LABEL]: 'db' };
  const spec = { secretName: 'db-peer-tls', issuerRef };
  const metadata = { namespace: 'ns', name: 'db-peer', labels };
  putInCache(certificates, { apiVersion: 'cert-manager.io/v1', kind: 'Certificate', metadata, spec });
  expect(enqueued()).toBe(1);
  expect(await found()).toBe('keyMissing');
});

test('the recovery point and the last backup of a schedule enqueue its cluster, other fields do not', () => {
  const { schedules, enqueued } = aWorld();
  const stored = (time: string) => ({ lastSuccessful: { name: 'x', time, artifact: { uri: 'u' } } });
  putInCache(schedules, aSchedule({ recoveryPoint: '1h' }));
  expect(enqueued()).toBeGreaterThan(0);
  putInCache(schedules, aSchedule({ recoveryPoint: '1h' }, { nextScheduleTime: '2026-03-01T01:00:00Z' }));
  expect(enqueued()).toBe(0);
  putInCache(schedules, aSchedule({ recoveryPoint: '1h' }, stored('2026-03-01T01:00:00Z')));
  expect(enqueued()).toBeGreaterThan(0);
  putInCache(
    schedules,
    aSchedule({ recoveryPoint: '1h', clusterRef: { name: 'other' } }, stored('2026-03-01T01:00:00Z')),
  );
  expect(enqueued()).toBe(2);
});

test('when the operator starts, clusters with all their members ready are reconciled last', () => {
  const { members } = aWorld();
  const cluster = aCluster({ spec: { replicas: 2 } });
  putInCache(members, member(1));
  expect(isComplete(members, cluster, () => true)).toBe(false);
  putInCache(members, member(2));
  expect(isComplete(members, cluster, () => true)).toBe(true);
  expect(isComplete(members, cluster, ({ metadata }) => metadata.name !== member(2).metadata.name)).toBe(false);
});
