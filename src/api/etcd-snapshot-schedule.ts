/** EtcdSnapshotSchedule: snapshots on a schedule, with retention and restore drills. */
import Type from 'typebox';
import { agentResources } from './agent-resources.ts';
import { cel } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import { ArtifactSchema, activeObjects, clusterReference, nameRule } from './etcd-snapshot.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { BY_CLUSTER, etcdSnapshotSchedules, MAX_SCHEDULE_NAME } from './names.ts';
import {
  optionalEnum,
  optionalFlag,
  optionalInt32,
  optionalInt64,
  optionalObject,
  optionalText,
  optionalTime,
} from './optional.ts';
import {
  COPY_DESCRIPTION,
  copyRule,
  SnapshotLocationSchema,
  snapshotResources,
  storedAs,
} from './snapshot-location.ts';
import { atomic } from './text.ts';

const howMany = (description: string, minimum = 0) => optionalInt32(description, { minimum, maximum: 100_000 });
const duration = (field: string, description: string) =>
  optionalText(description, {
    maxLength: 32,
    ...cel({
      rule: "self.matches('^([0-9]+[hms])+$') && self.matches('[1-9]')",
      message: `${field} must be a duration above zero, such as 36h or 90m`,
    }),
  });

/** A snapshot that no field keeps is deleted. The newest good one and the newest that a restore drill restored are always kept. */
const retentionOf = (field: string, what: string) =>
  optionalObject(
    `Which ${what} of this schedule are kept. Absent: all. A snapshot is kept as long as any of the fields keeps it; the newest good one and the newest that a restore drill restored are always kept.`,
    {
      keepLast: howMany('Keep this number of the newest snapshots.', 1),
      maxAge: duration(`${field}.maxAge`, 'Keep all snapshots that are younger than this, such as 720h.'),
      hourly: howMany(
        'Keep the newest snapshot of each hour, for this number of the latest hours that have one (UTC).',
      ),
      daily: howMany('The same for days.'),
      weekly: howMany('The same for weeks, which start on Monday.'),
      monthly: howMany('The same for months.'),
      yearly: howMany('The same for years.'),
    },
    cel({
      rule: 'has(self.keepLast) || has(self.maxAge) || [self.?hourly, self.?daily, self.?weekly, self.?monthly, self.?yearly].exists(n, n.orValue(0) > 0)',
      message: `${field} keeps nothing: set keepLast, maxAge, hourly, daily, weekly, monthly or yearly, or leave it out to keep all`,
    }),
  );
const retention = retentionOf('retention', 'stored snapshots');

const drill = optionalObject(
  'Restore drills: the newest snapshot is restored into a temporary member, and compared with what was recorded when it was taken.',
  {
    every: howMany('A drill follows every n-th successful snapshot. Absent: 1.', 1),
    storageSize: optionalText(
      'How much ephemeral storage of a node the drill requests, and may use. Absent: two databases and 272 MiB.',
      { pattern: '^[1-9][0-9]*([KMGT]i)?$', maxLength: 20 },
    ),
    resources: agentResources(
      'CPU and memory of the drill. Absent: requests of 100m and 128Mi, and a memory limit of two databases and 1Gi, at least 2Gi.',
    ),
  },
);

export const EtcdSnapshotScheduleSpecSchema = Type.Object(
  {
    clusterRef: clusterReference(),
    schedule: Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        'Cron expression with five fields, such as "30 3 * * *", or @hourly, @daily, @weekly, @monthly, @yearly.',
    }),
    timeZone: optionalText('Time zone of the schedule, such as Europe/Berlin. Absent: UTC.', {
      minLength: 1,
      maxLength: 64,
    }),
    suspend: optionalFlag('While true, no new snapshots start.'),
    immediate: optionalFlag(
      'true: the first snapshot is taken as soon as the cluster runs, and not only at the first scheduled time.',
    ),
    startingDeadlineSeconds: optionalInt64(
      'A snapshot that cannot start within this many seconds after its scheduled time is skipped. Absent: never skipped.',
      { minimum: 0 },
    ),
    concurrencyPolicy: optionalEnum(
      'What happens when the previous snapshot has not finished. Allow: both run. Forbid: the new one waits (within startingDeadlineSeconds). Replace: the previous one is cancelled. Absent: Forbid.',
      ['Allow', 'Forbid', 'Replace'],
    ),
    jitterSeconds: optionalInt32(
      'Each snapshot starts up to this many seconds later, so that not all schedules start at once. Absent: 0.',
      { minimum: 0, maximum: 86_400 },
    ),
    successfulSnapshotsHistoryLimit: howMany(
      'Number of successful EtcdSnapshot objects that are kept. Stored data is not deleted. Absent: 3.',
    ),
    failedSnapshotsHistoryLimit: howMany('Number of failed EtcdSnapshot objects that are kept. Absent: 3.'),
    destination: SnapshotLocationSchema,
    ...storedAs,
    resources: snapshotResources(),
    retention,
    recoveryPoint: duration(
      'recoveryPoint',
      'Recovery point objective (RPO), such as 25h: when the last good snapshot is older, the condition BackupFresh of the cluster is False.',
    ),
    drill,
    scrub: optionalEnum(
      'How often one stored snapshot, the one that was not verified for the longest time, is read from end to end and compared with what was stored. Never: not at all. Absent: Weekly with drill, otherwise Never.',
      ['Never', 'Daily', 'Weekly'],
    ),
    copyTo: optionalObject(COPY_DESCRIPTION, {
      destination: SnapshotLocationSchema,
      retention: retentionOf('copyTo.retention', 'copies'),
    }),
  },
  cel(copyRule),
);

const run = {
  name: Type.String({ description: 'The EtcdSnapshot.' }),
  time: Type.String({ format: 'date-time', description: 'When it finished.' }),
};

const prunedSchema = (description: string) =>
  optionalObject(description, {
    kept: Type.Integer({ format: 'int64' }),
    removed: Type.Integer({ format: 'int64' }),
    locked: optionalInt64(
      'Number of snapshots that were to be removed, and that the store keeps because of a lock, a retention policy or a legal hold of its own.',
    ),
    hidden: optionalInt64('Number of removed snapshots whose bytes the bucket keeps as older versions.'),
    time: Type.String({ format: 'date-time' }),
    for: Type.String({ description: 'The EtcdSnapshot after which retention ran.' }),
    policy: optionalText(
      'A hash of spec.retention, spec.destination and spec.layout: retention runs again when one of them changes.',
    ),
  });

export const EtcdSnapshotScheduleStatusSchema = Type.Object({
  lastScheduleTime: optionalTime('The last scheduled time for which a snapshot was started.'),
  nextScheduleTime: optionalTime('The next scheduled time.'),
  lastSuccessful: optionalObject('The last snapshot that was stored.', { ...run, artifact: ArtifactSchema }),
  lastFailed: Type.Optional(Type.Object({ ...run, reason: Type.String(), message: Type.String() })),
  successes: optionalInt64('Number of snapshots that were stored so far.'),
  active: activeObjects('EtcdSnapshots that have not finished.'),
  stored: prunedSchema('The result of the last retention run.'),
  copies: prunedSchema('The same for the copies.'),
  lastDrill: optionalObject('The result of the last restore drill.', {
    name: Type.String({ description: 'The EtcdSnapshot that was restored.' }),
    time: Type.String({ format: 'date-time' }),
    after: optionalInt64('Number of snapshots that were stored by then.'),
    succeeded: Type.Boolean(),
    revision: Type.Optional(Type.Integer({ format: 'int64' })),
    totalKeys: Type.Optional(Type.Integer({ format: 'int64' })),
    hashCompared: Type.Optional(Type.Boolean()),
    recoverySeconds: optionalInt64(
      'How long it took from the first byte of the download until a restored member had accepted a write.',
    ),
    reason: Type.Optional(Type.String()),
    message: Type.Optional(Type.String()),
    earlierFailure: optionalObject(
      'Set when this drill failed before it could test the snapshot: the last snapshot that a drill could not restore. Retention stays suspended.',
      { name: Type.String(), reason: Type.String() },
    ),
  }),
  location: optionalObject('Whether snapshots can be stored at the destination, as it was found last.', {
    checked: Type.String({
      description: 'A hash of the destination and of the versions of its Secrets: another one is checked again.',
    }),
    time: Type.String({ format: 'date-time' }),
    reason: optionalText('Absent: it is usable.'),
    message: Type.Optional(Type.String()),
    cannotList: optionalText('Why objects cannot be listed, which retention and scrubs need.'),
    cannotDelete: optionalText('Why objects cannot be deleted, which retention needs.'),
  }),
  nextScrubTime: optionalTime('When the next scrub starts.'),
  lastScrub: optionalObject('The result of the last scrub.', {
    name: optionalText('The EtcdSnapshot that was read. Absent: it could not be chosen, or nothing is stored.'),
    time: Type.String({ format: 'date-time', description: 'When it ended.' }),
    succeeded: Type.Boolean({ description: 'The snapshot is as it was when it was stored.' }),
    sizeBytes: optionalInt64('Size of the stored object.'),
    reason: Type.Optional(Type.String()),
    message: Type.Optional(Type.String()),
  }),
  scrubbed: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ description: 'The EtcdSnapshot.' }),
        uid: Type.Optional(Type.String()),
        time: Type.String({ format: 'date-time' }),
        reason: optionalText('Set when it is damaged. Retention does not count it as a good copy.'),
        message: Type.Optional(Type.String()),
      }),
      { ...atomic, description: 'What the last 64 scrubs found, and all damaged snapshots that are still stored.' },
    ),
  ),
  lastRestored: optionalObject('The newest snapshot that a restore drill restored. Retention never deletes it.', {
    name: Type.String({ description: 'The EtcdSnapshot.' }),
    uid: optionalText('Its uid, which is also in the manifest of the stored snapshot.'),
    time: Type.String({ format: 'date-time', description: 'When the drill ended.' }),
    uri: optionalText('Where the snapshot is stored.'),
    takenAt: optionalTime('When its data was read.'),
  }),
  conditions: Type.Optional(ConditionsSchema),
});

export type Retention = NonNullable<Accepted<typeof retention>>;
export type EtcdSnapshotScheduleSpec = Accepted<typeof EtcdSnapshotScheduleSpecSchema>;
export type EtcdSnapshotScheduleStatus = Accepted<typeof EtcdSnapshotScheduleStatusSchema>;

export type EtcdSnapshotSchedule = CustomObject<
  'EtcdSnapshotSchedule',
  typeof EtcdSnapshotScheduleSpecSchema,
  typeof EtcdSnapshotScheduleStatusSchema
>;

/** Reasons of drills that are about the snapshot: it cannot be restored as it is. */
const USELESS: readonly string[] = [
  'DrillFailed',
  'SnapshotDamaged',
  'ManifestDamaged',
  'ObjectNotFound',
  'WrongKey',
  'SnapshotTooNew',
];

interface Useless {
  readonly name: string;
  readonly reason: string;
}

/** The snapshots that a scrub found damaged, and that are still stored. */
export const damagedIn = ({ scrubbed = [] }: Pick<EtcdSnapshotScheduleStatus, 'scrubbed'>) =>
  scrubbed.flatMap(({ reason, ...rest }) => (reason === undefined ? [] : [{ ...rest, reason }]));

/** The newest snapshot that a drill restored, unless a scrub has found it damaged since. */
export const lastProven = ({ status = {} }: EtcdSnapshotSchedule): EtcdSnapshotScheduleStatus['lastRestored'] =>
  damagedIn(status).some(({ name }) => name === status.lastRestored?.name) ? undefined : status.lastRestored;

/** The last stored snapshot, when its restore drill or a scrub has shown that it cannot be restored. */
export function uselessBackup(schedule: EtcdSnapshotSchedule): Useless | undefined {
  const { status = {} } = schedule;
  const damaged = damagedIn(status).find(({ name }) => name === status.lastSuccessful?.name);
  return damaged ? { name: damaged.name, reason: damaged.reason } : unrestorableBackup(schedule);
}

/** The same by its restore drill: then a copy of it cannot be restored either. */
export function unrestorableBackup({ status = {} }: EtcdSnapshotSchedule): Useless | undefined {
  const { lastDrill, lastSuccessful } = status;
  if (!lastDrill || lastDrill.succeeded || lastDrill.name !== lastSuccessful?.name) return undefined;
  const { name, reason = '' } = lastDrill;
  return USELESS.includes(reason) ? { name, reason } : undefined;
}

/**
 * When the data of the last stored snapshot was read, or of the last that a drill restored if that one is useless: later writes
 * would be lost. `takenAt` is from the clock of a node, which may be ahead, so the time at which the snapshot was known to be
 * stored is the upper limit.
 */
export function backedUpAt(schedule: EtcdSnapshotSchedule): number | undefined {
  const { lastSuccessful } = schedule.status ?? {};
  const known = uselessBackup(schedule)
    ? [lastProven(schedule)?.takenAt]
    : [lastSuccessful?.artifact?.takenAt, lastSuccessful?.time];
  const times = known.map((text) => Date.parse(text ?? '')).filter((at) => !Number.isNaN(at));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** A schedule refers to its cluster by name: after the cluster was recreated, its last snapshot is that of the previous cluster. */
export const isBackupOf = ({ status }: EtcdSnapshotSchedule, clusterID: string | undefined): boolean => {
  const stored = status?.lastSuccessful?.artifact?.clusterID;
  return stored === undefined || clusterID === undefined || stored === clusterID;
};

/** The cache index of schedules by the cluster in their spec. */
export const byCluster = {
  name: BY_CLUSTER,
  of: ({ spec }: EtcdSnapshotSchedule): string | undefined => spec.clusterRef.name,
} as const;

export const etcdSnapshotScheduleKind: Kind = {
  names: namesOf(etcdSnapshotSchedules, 'etcdsnapsched'),
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
    { name: 'Scrub', type: 'boolean', jsonPath: '.status.lastScrub.succeeded', priority: 1 },
  ],
  rules: [nameRule(MAX_SCHEDULE_NAME, 'its snapshots are named after it and their scheduled minute')],
};
