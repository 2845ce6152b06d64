/** EtcdDefragPolicy: defragmentations on a schedule. */
import Type from 'typebox';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import { defragRule, ttlSecondsAfterFinished } from './etcd-defrag.ts';
import { activeObjects, clusterReference, nameRule } from './etcd-snapshot.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { BY_CLUSTER, etcdDefragPolicies, MAX_POLICY_NAME } from './names.ts';
import { optionalEnum, optionalFlag, optionalInt32, optionalInt64, optionalText, optionalTime } from './optional.ts';

export const EtcdDefragPolicySpecSchema = Type.Object({
  clusterRef: clusterReference(),
  schedule: Type.String({
    minLength: 1,
    description: 'Cron expression with five fields, such as "30 3 * * 0"; UTC unless it starts with CRON_TZ=Zone.',
  }),
  timeZone: optionalText('Time zone of the schedule, such as Europe/Berlin. Absent: UTC.', {
    minLength: 1,
    maxLength: 64,
  }),
  windowSeconds: optionalInt32(
    'Each run starts up to this many seconds after its time, every cluster at another moment, so that not all of them are defragmented at once. Absent: 0.',
    { minimum: 0, maximum: 86_400 },
  ),
  suspend: optionalFlag('While true, no new runs start.'),
  concurrencyPolicy: optionalEnum('Whether runs may overlap. Absent: Forbid.', ['Allow', 'Forbid']),
  startingDeadlineSeconds: optionalInt64(
    'A run that cannot start within this many seconds after its time is skipped. Absent: never skipped.',
    { minimum: 0 },
  ),
  historyLimit: optionalInt32('Number of finished EtcdDefrags that are kept. Absent: all.', { minimum: 0 }),
  rule: defragRule,
  ttlSecondsAfterFinished,
});

export const EtcdDefragPolicyStatusSchema = Type.Object({
  lastScheduleTime: Type.Optional(Type.String({ format: 'date-time' })),
  nextScheduleTime: optionalTime('When the next run starts.'),
  lastSuccessfulTime: Type.Optional(Type.String({ format: 'date-time' })),
  active: activeObjects('EtcdDefrags that have not finished.'),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdDefragPolicyStatus = Accepted<typeof EtcdDefragPolicyStatusSchema>;
export type EtcdDefragPolicy = CustomObject<
  'EtcdDefragPolicy',
  typeof EtcdDefragPolicySpecSchema,
  typeof EtcdDefragPolicyStatusSchema
>;

export const etcdDefragPolicyKind: Kind = {
  names: namesOf(etcdDefragPolicies, 'etcddfp'),
  description: 'Defragmentations of an EtcdCluster on a schedule.',
  spec: EtcdDefragPolicySpecSchema,
  status: EtcdDefragPolicyStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name' },
    { name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' },
    { name: 'Suspend', type: 'boolean', jsonPath: '.spec.suspend' },
    { name: 'Last Schedule', type: 'date', jsonPath: '.status.lastScheduleTime' },
  ],
  rules: [nameRule(MAX_POLICY_NAME, 'it is a label value of its EtcdDefrags')],
};

/** The cache index of policies by the cluster in their spec. */
export const policiesByCluster = {
  name: BY_CLUSTER,
  of: ({ spec }: EtcdDefragPolicy): string | undefined => spec.clusterRef.name,
} as const;
