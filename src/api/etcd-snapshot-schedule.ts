/** EtcdSnapshotSchedule: snapshots again and again, the old ones removed, the new ones tried out. */
import Type, { type Static } from 'typebox';
import { cel, unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import type { Kind } from './crd.ts';
import { ArtifactSchema, clusterReference, nameRule, time } from './etcd-snapshot.ts';
import type { DeepReadonly, ObjectMeta } from './meta.ts';
import { type API_VERSION, BY_CLUSTER, MAX_SCHEDULE_NAME } from './names.ts';
import { SnapshotLocationSchema, storedAs } from './snapshot-location.ts';
import { atomic, localReference } from './text.ts';

const howMany = (description: string, least = 0) =>
  Type.Optional(Type.Integer({ format: 'int32', minimum: least, maximum: 100_000, description }));
const duration = (field: string, description: string) =>
  Type.Optional(
    Type.String({
      maxLength: 32,
      description,
      ...cel({
        rule: "self.matches('^([0-9]+[hms])+$') && self.matches('[1-9]')",
        message: `${field} must be a duration above zero, such as 36h or 90m`,
      }),
    }),
  );

/** Each keeps something; what none of them keeps is removed. The newest good one and the newest that a drill restored always stay. */
export const RetentionSchema = Type.Object(
  {
    keepLast: howMany('So many of the newest.', 1),
    maxAge: duration('retention.maxAge', 'All that are younger, such as 720h.'),
    hourly: howMany('The newest of each of the last so many hours that have one (UTC).'),
    daily: howMany('The same for days.'),
    weekly: howMany('The same for weeks, which begin on Mondays.'),
    monthly: howMany('The same for months.'),
    yearly: howMany('The same for years.'),
  },
  {
    description:
      'Which stored snapshots of this schedule are kept. Absent: all. A snapshot stays as long as any of the fields keeps it; the newest good one and the newest that a drill restored always do.',
    ...cel({
      rule: 'has(self.keepLast) || has(self.maxAge) || [self.?hourly, self.?daily, self.?weekly, self.?monthly, self.?yearly].exists(n, n.orValue(0) > 0)',
      message:
        'retention keeps nothing: set keepLast, maxAge, hourly, daily, weekly, monthly or yearly, or leave it out to keep all',
    }),
  },
);

const DrillSchema = Type.Object(
  {
    every: howMany('After every so many successful snapshots. Absent: 1.', 1),
    storageSize: Type.Optional(
      Type.String({
        pattern: '^[1-9][0-9]*([KMGT]i)?$',
        maxLength: 20,
        description: 'How much disk of a node it may take. Absent: no limit but the node’s.',
      }),
    ),
  },
  {
    description:
      'The newest snapshot is restored into a member that is thrown away, and compared with what was recorded when it was taken.',
  },
);

export const EtcdSnapshotScheduleSpecSchema = Type.Object({
  clusterRef: clusterReference(),
  schedule: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'Cron with five fields, such as "30 3 * * *", or @hourly, @daily, @weekly, @monthly, @yearly.',
  }),
  timeZone: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: 'Such as Europe/Berlin. Absent: UTC.' }),
  ),
  suspend: Type.Optional(Type.Boolean({ description: 'No new snapshots while true.' })),
  startingDeadlineSeconds: Type.Optional(
    Type.Integer({ format: 'int64', minimum: 0, description: 'How late one may still begin. Absent: always.' }),
  ),
  concurrencyPolicy: Type.Optional(
    Type.Enum(['Allow', 'Forbid', 'Replace'], {
      type: 'string',
      description:
        'What happens when the last one has not ended: both run, the new one waits for its end (within startingDeadlineSeconds), or the old one is ended. Absent: Forbid.',
    }),
  ),
  jitterSeconds: Type.Optional(
    Type.Integer({
      format: 'int32',
      minimum: 0,
      maximum: 86_400,
      description: 'Each begins up to so much later, so that not all schedules begin at once. Absent: 0.',
    }),
  ),
  successfulSnapshotsHistoryLimit: howMany(
    'How many EtcdSnapshots that succeeded are kept. Stored data is not touched. Absent: 3.',
  ),
  failedSnapshotsHistoryLimit: howMany('How many EtcdSnapshots that failed are kept. Absent: 3.'),
  destination: SnapshotLocationSchema,
  ...storedAs,
  retention: Type.Optional(RetentionSchema),
  recoveryPoint: duration(
    'recoveryPoint',
    'How much may be lost at most, such as 25h: when the last good snapshot is older, the cluster’s condition BackupFresh is False.',
  ),
  drill: Type.Optional(DrillSchema),
});

const RunSchema = Type.Object({
  name: Type.String({ description: 'The EtcdSnapshot.' }),
  time: Type.String({ format: 'date-time', description: 'When it ended.' }),
});

export const EtcdSnapshotScheduleStatusSchema = Type.Object({
  lastScheduleTime: time('The last time that a snapshot was due and was begun.'),
  nextScheduleTime: time('The next one.'),
  lastSuccessful: Type.Optional(
    Type.Object(
      { ...RunSchema.properties, artifact: ArtifactSchema },
      { description: 'The last one that was stored.' },
    ),
  ),
  lastFailed: Type.Optional(Type.Object({ ...RunSchema.properties, reason: Type.String(), message: Type.String() })),
  successes: Type.Optional(Type.Integer({ format: 'int64', description: 'How many were stored so far.' })),
  active: Type.Optional(
    Type.Array(unvalidated(localReference('active[]', '')), {
      ...atomic,
      description: 'Snapshots that have not ended.',
    }),
  ),
  stored: Type.Optional(
    Type.Object(
      {
        kept: Type.Integer({ format: 'int64' }),
        removed: Type.Integer({ format: 'int64' }),
        time: Type.String({ format: 'date-time' }),
        for: Type.String({ description: 'After which EtcdSnapshot.' }),
        policy: Type.Optional(
          Type.String({ description: 'Which retention that was: a change leads to another look.' }),
        ),
      },
      { description: 'What retention did last.' },
    ),
  ),
  lastDrill: Type.Optional(
    Type.Object(
      {
        name: Type.String({ description: 'Of the EtcdSnapshot that was tried out.' }),
        time: Type.String({ format: 'date-time' }),
        after: Type.Optional(Type.Integer({ format: 'int64', description: 'How many were stored by then.' })),
        succeeded: Type.Boolean(),
        revision: Type.Optional(Type.Integer({ format: 'int64' })),
        totalKeys: Type.Optional(Type.Integer({ format: 'int64' })),
        hashCompared: Type.Optional(Type.Boolean()),
        reason: Type.Optional(Type.String()),
        message: Type.Optional(Type.String()),
        earlierFailure: Type.Optional(
          Type.Object(
            { name: Type.String(), reason: Type.String() },
            {
              description:
                'When this drill did not get as far as the snapshot: the last one that a drill could not restore. Retention stays held.',
            },
          ),
        ),
      },
      { description: 'The last snapshot that was restored to see whether it can be.' },
    ),
  ),
  lastRestored: Type.Optional(
    Type.Object(
      {
        name: Type.String({ description: 'The EtcdSnapshot.' }),
        uid: Type.Optional(Type.String({ description: 'Its uid, which the manifest of the stored snapshot has too.' })),
        time: Type.String({ format: 'date-time', description: 'When the drill ended.' }),
        uri: Type.Optional(Type.String({ description: 'Where the snapshot is.' })),
      },
      { description: 'The newest snapshot that a drill restored. Retention never removes it.' },
    ),
  ),
  conditions: Type.Optional(ConditionsSchema),
});

export type Retention = DeepReadonly<Static<typeof RetentionSchema>>;
export type EtcdSnapshotScheduleSpec = DeepReadonly<Static<typeof EtcdSnapshotScheduleSpecSchema>>;
export type EtcdSnapshotScheduleStatus = DeepReadonly<Static<typeof EtcdSnapshotScheduleStatusSchema>>;

export interface EtcdSnapshotSchedule {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: 'EtcdSnapshotSchedule';
  readonly metadata: ObjectMeta;
  readonly spec: EtcdSnapshotScheduleSpec;
  readonly status?: EtcdSnapshotScheduleStatus;
}

/**
 * When the data of the last stored snapshot was read: what came after it would be lost. That is told by the clock of some node,
 * which may be ahead: not after it was known to be stored.
 */
export const backedUpAt = ({ status }: EtcdSnapshotSchedule): number | undefined => {
  const { artifact, time } = status?.lastSuccessful ?? {};
  const known = [artifact?.takenAt, time].map((text) => Date.parse(text ?? '')).filter((at) => !Number.isNaN(at));
  return known.length === 0 ? undefined : Math.min(...known);
};

/** For caches: found by the cluster in their spec. */
export const byCluster = {
  name: BY_CLUSTER,
  of: ({ spec }: EtcdSnapshotSchedule): string | undefined => spec.clusterRef.name,
} as const;

export const etcdSnapshotScheduleKind: Kind = {
  names: {
    kind: 'EtcdSnapshotSchedule',
    plural: 'etcdsnapshotschedules',
    singular: 'etcdsnapshotschedule',
    shortNames: ['etcdsnapsched'],
  },
  description: 'Snapshots of an EtcdCluster on a schedule, with retention and restore drills.',
  spec: EtcdSnapshotScheduleSpecSchema,
  status: EtcdSnapshotScheduleStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name' },
    { name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' },
    { name: 'Suspend', type: 'boolean', jsonPath: '.spec.suspend' },
    { name: 'Last Success', type: 'date', jsonPath: '.status.lastSuccessful.time' },
    { name: 'Next', type: 'string', jsonPath: '.status.nextScheduleTime' },
    { name: 'Drill', type: 'boolean', jsonPath: '.status.lastDrill.succeeded', priority: 1 },
  ],
  rules: [nameRule(MAX_SCHEDULE_NAME, 'its snapshots are named after it and the minute they are for')],
};
