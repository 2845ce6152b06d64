/** EtcdDefragPolicy: defragmentations on a schedule. */
import Type from 'typebox';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import { defragRule, ttlSecondsAfterFinished } from './etcd-defrag.ts';
import { activeObjects, clusterReference, nameRule } from './etcd-snapshot.ts';
import type { CustomObject } from './meta.ts';
import { etcdDefragPolicies, MAX_POLICY_NAME } from './names.ts';
import { optionalEnum, optionalFlag, optionalInt32, optionalInt64 } from './optional.ts';

export const EtcdDefragPolicySpecSchema = Type.Object({
  clusterRef: clusterReference(),
  schedule: Type.String({
    minLength: 1,
    description: 'Cron expression with five fields, such as "30 3 * * 0"; UTC unless it starts with CRON_TZ=Zone.',
  }),
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
  lastSuccessfulTime: Type.Optional(Type.String({ format: 'date-time' })),
  active: activeObjects('EtcdDefrags that have not finished.'),
  conditions: Type.Optional(ConditionsSchema),
});

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
