/** Schedules, their snapshots and Jobs for tests. */

import { findCondition } from '../../../src/api/conditions.ts';
import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../../src/api/etcd-snapshot.ts';
import type {
  EtcdSnapshotSchedule,
  EtcdSnapshotScheduleSpec,
  EtcdSnapshotScheduleStatus,
} from '../../../src/api/etcd-snapshot-schedule.ts';
import { ABOUT_ANNOTATION, API_VERSION, etcdSnapshotSchedules } from '../../../src/api/names.ts';
import { scheduledSnapshot } from '../../../src/controllers/snapshot-schedule/build.ts';
import type { Observed, OwnedJob } from '../../../src/controllers/snapshot-schedule/observed.ts';
import { statusOf } from '../../../src/controllers/snapshot-schedule/status.ts';
import { type PruneTask, TASK_VARIABLE } from '../../../src/domain/agent-task.ts';
import type { Job, Pod } from '../../../src/gen/kube.ts';
import type { Plan } from '../../../src/runtime/plan.ts';
import { aCluster } from './builders.ts';

export const SCHEDULE_UID = '44444444-0000-4000-8000-000000000000';
export const BEGAN = '2026-03-01T00:00:00Z';

/** Every hour, since midnight of 1 March 2026. */
export function aSchedule(
  spec: Partial<EtcdSnapshotScheduleSpec> = {},
  status?: EtcdSnapshotScheduleStatus,
): EtcdSnapshotSchedule {
  return {
    apiVersion: API_VERSION,
    kind: etcdSnapshotSchedules.kind,
    metadata: {
      name: 'hourly',
      namespace: 'ns',
      uid: SCHEDULE_UID,
      generation: 1,
      resourceVersion: '300',
      creationTimestamp: BEGAN,
    },
    spec: {
      clusterRef: { name: 'db' },
      schedule: '0 * * * *',
      destination: {
        s3: { endpoint: 'https://s3', bucket: 'b', key: 'backups', credentialsSecretRef: { name: 's3' } },
      },
      ...spec,
    },
    ...(status && { status }),
  };
}

export const ARTIFACT = { uri: 's3://b/backups/x.db', sizeBytes: 10 };

export const STORED: EtcdSnapshotStatus = {
  phase: 'Complete',
  artifact: ARTIFACT,
  completionTime: '2026-03-01T09:01:00Z',
};
export const FAILED: EtcdSnapshotStatus = {
  phase: 'Failed',
  completionTime: '2026-03-01T09:01:00Z',
  conditions: [
    {
      type: 'Ready',
      status: 'False',
      reason: 'AccessDenied',
      message: 'the key is wrong',
      lastTransitionTime: '2026-03-01T09:01:00Z',
    },
  ],
};

/** The snapshot of a minute of 1 March 2026. */
export function aRun(time: string, status?: EtcdSnapshotStatus, going = false): EtcdSnapshot {
  const made = scheduledSnapshot(aSchedule(), Date.parse(`2026-03-01T${time}Z`));
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: `run-${time}`,
      ...(going && { deletionTimestamp: '2026-03-01T10:00:00Z' }),
    },
    ...(status && { status }),
  };
}

export function scheduleWorld(time: string, patch: Partial<Observed> = {}): Observed {
  return {
    now: Date.parse(`2026-03-01T${time}Z`),
    refusal: undefined,
    object: aSchedule(),
    cluster: aCluster(),
    runs: [],
    due: { is: 'absent' },
    jobs: [],
    operatorImage: 'operator:1',
    images: { repository: 'quay.io/coreos/etcd', allowed: [] },
    ...patch,
  };
}

/** A Job of the schedule, as Kubernetes tells about it, with one Pod that has said something. */
export function aWork(
  name: string,
  ended?: { readonly type: 'Complete' | 'Failed' | 'FailureTarget'; readonly at?: string; readonly reason?: string },
  said?: unknown,
  about = 'hourly-202603010500',
): OwnedJob {
  const job: Job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'ns', uid: `job-${name}`, annotations: { [ABOUT_ANNOTATION]: about } },
    spec: { template: { spec: { containers: [] } } },
    ...(ended && {
      status: {
        conditions: [
          {
            type: ended.type,
            status: 'True',
            lastTransitionTime: ended.at ?? '2026-03-01T09:05:00Z',
            ...(ended.reason !== undefined && { reason: ended.reason }),
          },
        ],
      },
    }),
  };
  const message = typeof said === 'string' ? said : JSON.stringify(said);
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `${name}-x`, namespace: 'ns' },
    status: {
      containerStatuses: [
        {
          name: 'agent',
          image: '',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { terminated: { exitCode: ended?.type === 'Complete' ? 0 : 1, message } },
        },
      ],
    },
  };
  return { job, pods: said === undefined ? [] : [pod] };
}

/** What a drill reports that has restored its snapshot. */
export const RESTORED = {
  ok: true,
  task: 'drill',
  revision: 7,
  totalKeys: 3,
  hashCompared: true,
  durationMilliseconds: 1,
} as const;
/** Reasons of failed drills that say nothing about the snapshot. */
export const INCONCLUSIVE: readonly string[] = ['StoreUnreachable', 'AccessDenied', 'NoSpace'];

/** What the Job is to do. */
export const pruneTaskOf = (job: Job): PruneTask => {
  const [agent] = job.spec?.template.spec?.containers ?? [];
  return JSON.parse(agent?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '') as PruneTask;
};

/** Which rule, and what it does, in short. */
export const doing = (plan: Plan<EtcdSnapshotScheduleStatus>): readonly string[] => [
  plan.rule,
  ...plan.steps.map((step) =>
    step.do === 'create' ? `+${step.object.metadata.name}` : step.do === 'delete' ? `-${step.what.name}` : step.do,
  ),
];
export const condition = (plan: Plan<EtcdSnapshotScheduleStatus>, type: string) => {
  const { status, reason, message } = findCondition(plan.status.conditions, type) ?? {};
  return `${status}/${reason}: ${message}`;
};
export const events = (plan: Plan<EtcdSnapshotScheduleStatus>): readonly string[] =>
  plan.events.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);

/** The object after a pass whose status was written. */
export const settled = (o: Observed): Observed => ({ ...o, object: { ...o.object, status: statusOf(o) } });
export const at = (
  time: string,
  spec: Partial<EtcdSnapshotScheduleSpec> = {},
  status?: EtcdSnapshotScheduleStatus,
  rest: Partial<Observed> = {},
) => scheduleWorld(time, { object: aSchedule(spec, status), ...rest });
export const begunAt = (time: string): EtcdSnapshotScheduleStatus => ({ lastScheduleTime: `2026-03-01T${time}Z` });
