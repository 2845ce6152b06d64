/** Observed states of a snapshot, for test tables. */

import type { EtcdSnapshot, EtcdSnapshotSpec, EtcdSnapshotStatus } from '../../../src/api/etcd-snapshot.ts';
import { API_VERSION, agentLabels, CLUSTER_LABEL, snapshotJobName } from '../../../src/api/names.ts';
import type { MemberReport, MemberView, Observed } from '../../../src/controllers/snapshot/observed.ts';
import type { Result } from '../../../src/domain/agent-result.ts';
import type { ContainerState, Job, Pod } from '../../../src/gen/kube.ts';
import { aCluster, CLUSTER_ID, condition, FORMED, NOW } from './builders.ts';

export const SNAPSHOT_UID = '55555555-0000-4000-8000-000000000000';
export const JOB_UID = '66666666-0000-4000-8000-000000000000';

const MINUTE = 60_000;
export const ago = (ms: number): string => new Date(NOW - ms).toISOString();

export const s3 = {
  endpoint: 'https://s3.example.com',
  bucket: 'backups',
  key: 'prod/',
  credentialsSecretRef: { name: 'keys' },
};

export function aSnapshot(
  options: {
    readonly spec?: Partial<EtcdSnapshotSpec>;
    readonly status?: EtcdSnapshotStatus;
    readonly ageMs?: number;
    readonly deleting?: boolean;
  } = {},
): EtcdSnapshot {
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: {
      name: 'monday',
      namespace: 'ns',
      uid: SNAPSHOT_UID,
      generation: 1,
      resourceVersion: '300',
      creationTimestamp: ago(options.ageMs ?? MINUTE),
      ...(options.deleting && { deletionTimestamp: ago(0) }),
    },
    spec: { clusterRef: { name: 'db' }, destination: { s3 }, ...options.spec },
    ...(options.status && { status: options.status }),
  };
}

/** The status while its Job exists. */
export const STARTED: EtcdSnapshotStatus = {
  phase: 'Started',
  startTime: ago(MINUTE),
  conditions: [condition('Ready', 'False', 'JobRunning')],
};

export function aJob(status: Job['status'] = {}, ownerUid = SNAPSHOT_UID): Job {
  const owner = { apiVersion: API_VERSION, kind: 'EtcdSnapshot', name: 'monday', uid: ownerUid, controller: true };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: snapshotJobName('monday'),
      namespace: 'ns',
      uid: JOB_UID,
      labels: agentLabels('db'),
      creationTimestamp: ago(MINUTE),
      ownerReferences: [owner],
    },
    status,
  };
}

/** As the Go operator creates it: labelled with the cluster only. */
export const aGoJob = (status: Job['status'] = {}): Job => {
  const job = aJob(status);
  return { ...job, metadata: { ...job.metadata, labels: { [CLUSTER_LABEL]: 'db' } } };
};

export const ended = (
  type: 'Complete' | 'Failed' | 'FailureTarget',
  agoMs: number,
  words: object = {},
): Job['status'] => ({
  conditions: [{ type, status: 'True', lastTransitionTime: ago(agoMs), ...words }],
});

export function anAgent(n: number, state: ContainerState = {}, status: Pod['status'] = {}): Pod {
  const owner = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    name: snapshotJobName('monday'),
    uid: JOB_UID,
    controller: true,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `monday-snapshot-${n}`,
      namespace: 'ns',
      uid: `agent-${n}`,
      creationTimestamp: ago(MINUTE - n * 1_000),
      labels: { ...agentLabels('db'), 'batch.kubernetes.io/job-name': snapshotJobName('monday') },
      ownerReferences: [owner],
    },
    status: {
      phase: 'Running',
      containerStatuses: [
        { name: 'snapshot-agent', image: 'i', imageID: 'i', ready: true, restartCount: 0, state: { ...state } },
      ],
      ...status,
    },
  };
}

/** The terminated state of its container. */
export const left = (exitCode: number, message?: string, reason = 'Completed'): ContainerState => ({
  terminated: { exitCode, reason, ...(message !== undefined && { message }) },
});
export const tells = (result: Result): string => JSON.stringify(result);

export const STORED = {
  uri: 's3://backups/prod/monday.db',
  sizeBytes: 20_512,
  checksum: `sha256:${'a'.repeat(64)}`,
  databaseBytes: 20_512,
  revision: 42,
  totalKeys: 7,
  etcdVersion: '3.6.16',
  clusterID: CLUSTER_ID,
  member: 'db-aaaaa',
  compression: 'None',
  encrypted: false,
  takenAt: '2026-01-01T11:59:30.123Z',
  durationMilliseconds: 900,
};
export const isStored = (change: object = {}): string =>
  tells({ ok: true, task: 'snapshot', artifact: { ...STORED, ...change } });

type Answers = Extract<MemberReport, { readonly is: 'answers' }>;
/** The first one is the leader. */
export const aVoter = (n: number, change: Partial<Answers> = {}): MemberView => ({
  name: `db-${n}`,
  host: `db-${n}.db.ns.svc`,
  endpoint: `http://db-${n}.db.ns.svc:2379`,
  report: {
    is: 'answers',
    id: `${n}`,
    leader: '1',
    isLearner: false,
    applied: 10_000,
    isCorrupt: false,
    databaseBytes: 0,
    ...change,
  },
});
export const anUnreachableMember = (n: number, message = 'connection refused'): MemberView => ({
  ...aVoter(n),
  report: { is: 'unreachable', message },
});

/** A snapshot that can start. */
export const world = (change: Partial<Observed> = {}): Observed => ({
  now: NOW,
  refusal: undefined,
  object: aSnapshot(),
  operatorImage: 'registry.example.com/etcd-operator:v1',
  job: { is: 'absent' },
  isLeaving: false,
  pods: [],
  cluster: aCluster({ status: FORMED }),
  lacks: [],
  sources: {},
  members: [aVoter(1), aVoter(2), aVoter(3)],
  ...change,
});

/** A snapshot whose Job exists. */
export const withJob = (job: Job['status'], ...pods: readonly Pod[]): Observed =>
  world({
    object: aSnapshot({ status: STARTED }),
    job: { is: 'ours', object: aJob(job) },
    pods,
    members: [],
  });
