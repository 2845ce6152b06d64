/** Schedules, their snapshots and Jobs for tests. */

import type { EtcdSnapshot, EtcdSnapshotStatus } from '../../../src/api/etcd-snapshot.ts';
import type {
  EtcdSnapshotSchedule,
  EtcdSnapshotScheduleSpec,
  EtcdSnapshotScheduleStatus,
} from '../../../src/api/etcd-snapshot-schedule.ts';
import { ABOUT_ANNOTATION, API_VERSION, etcdSnapshotSchedules } from '../../../src/api/names.ts';
import type { Observed, OwnedJob } from '../../../src/controllers/snapshot-schedule/observed.ts';
import { statusOf } from '../../../src/controllers/snapshot-schedule/status.ts';
import { type PruneTask, TASK_VARIABLE } from '../../../src/domain/agent-task.ts';
import { findCondition } from '../../../src/domain/conditions.ts';
import { scheduledSnapshot } from '../../../src/domain/scheduled-snapshot.ts';
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
export function aRun(time: string, status?: EtcdSnapshotStatus, deleting = false): EtcdSnapshot {
  const made = scheduledSnapshot(aSchedule(), Date.parse(`2026-03-01T${time}Z`));
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: `run-${time}`,
      ...(deleting && { deletionTimestamp: '2026-03-01T10:00:00Z' }),
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

/** A Job of the schedule with one Pod that reports a result. */
export function aWork(
  name: string,
  ended?: { readonly type: 'Complete' | 'Failed' | 'FailureTarget'; readonly at?: string; readonly reason?: string },
  result?: unknown,
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
  const message = typeof result === 'string' ? result : JSON.stringify(result);
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
  return { job, pods: result === undefined ? [] : [pod] };
}

/** The result of a drill that has restored its snapshot. */
export const RESTORED = {
  ok: true,
  task: 'drill',
  revision: 7,
  totalKeys: 3,
  hashCompared: true,
  durationMilliseconds: 1,
} as const;
/** Reasons of failed drills that prove nothing about the snapshot. */
export const INCONCLUSIVE: readonly string[] = ['StoreUnreachable', 'AccessDenied', 'NoSpace', 'OutOfMemory'];

/** The task of the Job. */
export const pruneTaskOf = (job: Job): PruneTask => {
  const [agent] = job.spec?.template.spec?.containers ?? [];
  return JSON.parse(agent?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '') as PruneTask;
};

/** The rule and its steps, abbreviated. */
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

/** The object after a reconcile whose status was written. */
export const settled = (o: Observed): Observed => ({ ...o, object: { ...o.object, status: statusOf(o) } });
export const at = (
  time: string,
  spec: Partial<EtcdSnapshotScheduleSpec> = {},
  status?: EtcdSnapshotScheduleStatus,
  rest: Partial<Observed> = {},
) => scheduleWorld(time, { object: aSchedule(spec, status), ...rest });
export const startedAt = (time: string): EtcdSnapshotScheduleStatus => ({ lastScheduleTime: `2026-03-01T${time}Z` });
