/** Builders of Kubernetes objects for tests. */
import type { Condition } from '../../../src/api/conditions.ts';
import { targetOf } from '../../../src/api/defaults.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import type { EtcdMember, EtcdMemberSpec, EtcdMemberStatus } from '../../../src/api/etcd-member.ts';
import {
  API_VERSION,
  MEMBER_FINALIZER,
  MEMBER_UID_ANNOTATION,
  memberLabels,
  memberName,
  peerURL,
} from '../../../src/api/names.ts';
import type { SelfReport } from '../../../src/controllers/cluster/observed.ts';
import type { PersistentVolumeClaim, Pod } from '../../../src/gen/kube.ts';

export const NOW = Date.parse('2026-01-01T12:00:00Z');
export const CLUSTER_UID = '11111111-0000-4000-8000-000000000000';
export const MEMBER_UID = '22222222-0000-4000-8000-000000000000';
export const POD_UID = '33333333-0000-4000-8000-000000000000';
export const SEED_NAME = memberName('db', CLUSTER_UID, 1);
export const CLUSTER_ID = 'cafe000000000001';
export const MEMBER_ID = 'beef000000000001';

export const condition = (type: string, status: Condition['status'], reason: string, message = 'm'): Condition => ({
  type,
  status,
  reason,
  message,
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

const owner = (kind: string, name: string, uid: string) => [
  { apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true },
];

export function aCluster(
  options: {
    readonly spec?: Partial<EtcdClusterSpec>;
    readonly status?: EtcdClusterStatus;
    readonly deleting?: boolean;
  } = {},
): EtcdCluster {
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdCluster',
    metadata: {
      name: 'db',
      namespace: 'ns',
      uid: CLUSTER_UID,
      generation: 1,
      resourceVersion: '100',
      ...(options.deleting && { deletionTimestamp: '2026-01-01T11:59:00Z' }),
    },
    spec: { replicas: 1, version: '3.6.16', storage: { size: '1Gi', medium: '' }, ...options.spec },
    ...(options.status && { status: options.status }),
  };
}

/** The target of a cluster whose spec has only the required fields. */
export const TARGET = targetOf({ replicas: 1, version: '3.6.16' });
const { replicas: _, ...TEMPLATE } = TARGET;

/** The status that the first reconcile latches. */
export const LATCHED: EtcdClusterStatus = {
  clusterToken: `ns-db-${CLUSTER_UID}`,
  defaults: '1',
  observed: TARGET,
  membersNamed: 1,
};
export const FORMED: EtcdClusterStatus = { ...LATCHED, clusterID: CLUSTER_ID };

/** The status that a healthy leader reports about itself. */
export const SELF: SelfReport = {
  id: MEMBER_ID,
  clusterID: CLUSTER_ID,
  leader: MEMBER_ID,
  isLearner: false,
  version: '3.6.16',
  alarms: [],
  databaseBytes: 0,
  databaseBytesInUse: 0,
  term: 2,
  applied: 10,
};

export const READY = [condition('Ready', 'True', 'PodReady')];

export function aMember(
  options: {
    readonly spec?: Partial<EtcdMemberSpec>;
    readonly status?: EtcdMemberStatus;
    readonly deleting?: boolean;
    readonly finalizers?: readonly string[];
  } = {},
): EtcdMember {
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdMember',
    metadata: {
      name: SEED_NAME,
      namespace: 'ns',
      uid: MEMBER_UID,
      generation: 1,
      resourceVersion: '200',
      labels: memberLabels('db', SEED_NAME),
      finalizers: options.finalizers ?? [MEMBER_FINALIZER],
      ownerReferences: owner('EtcdCluster', 'db', CLUSTER_UID),
      ...(options.deleting && { deletionTimestamp: '2026-01-01T11:59:00Z' }),
    },
    spec: {
      ...TEMPLATE,
      clusterName: 'db',
      bootstrap: true,
      initialCluster: `${SEED_NAME}=${peerURL(SEED_NAME, 'db', 'ns')}`,
      clusterToken: `ns-db-${CLUSTER_UID}`,
      ...options.spec,
    },
    ...(options.status && { status: options.status }),
  };
}

export function aPod(
  options: {
    readonly ready?: boolean;
    readonly status?: Pod['status'];
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
  } = {},
): Pod {
  const ready = options.ready ?? false;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: SEED_NAME,
      namespace: 'ns',
      uid: options.uid ?? POD_UID,
      labels: { ...memberLabels('db', SEED_NAME), ...options.labels },
      ownerReferences: owner('EtcdMember', SEED_NAME, MEMBER_UID),
    },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      startTime: '2026-01-01T11:59:59Z',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
      ...options.status,
    },
  };
}

export const aVolume = (): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: {
    name: `data-${SEED_NAME}`,
    namespace: 'ns',
    uid: '44444444-0000-4000-8000-000000000000',
    labels: memberLabels('db', SEED_NAME),
    annotations: { [MEMBER_UID_ANNOTATION]: MEMBER_UID },
  },
});
