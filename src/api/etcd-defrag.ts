/** EtcdDefrag: a one-time defragmentation of the members of a cluster. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import { clusterReference } from './etcd-snapshot.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { BY_CLUSTER, etcdDefrags } from './names.ts';
import { optionalFlag, optionalInt32, optionalObject, optionalText, optionalTime } from './optional.ts';
import { aboveZero, quantity } from './text.ts';

export const defragRule = optionalObject(
  'Which members are defragmented. Absent or empty: those that would free more than 200Mi.',
  {
    all: optionalFlag('Defragment every member, however little space that frees.'),
    freeSpaceAbove: Type.Optional(
      quantity({
        description: 'Defragment members that would free more than this. Absent: 200Mi.',
        ...cel(aboveZero('rule.freeSpaceAbove', '200Mi')),
      }),
    ),
    quotaUsageAbove: optionalText(
      'Also defragment members whose database is larger than this share of the quota, such as 80%.',
      { pattern: '^([1-9][0-9]?|100)%$' },
    ),
    minReclaim: Type.Optional(
      quantity({
        description: 'With quotaUsageAbove: only if that frees at least this much. Absent: 32Mi.',
        ...cel(aboveZero('rule.minReclaim', '200Mi')),
      }),
    ),
  },
  cel(
    {
      rule: '!(has(self.all) && self.all) || !(has(self.freeSpaceAbove) || has(self.quotaUsageAbove) || has(self.minReclaim))',
      message: 'rule.all selects every member: remove freeSpaceAbove, quotaUsageAbove and minReclaim, or all',
      fieldPath: '.all',
    },
    {
      rule: '!has(self.minReclaim) || has(self.quotaUsageAbove)',
      message: 'rule.minReclaim only works together with quotaUsageAbove: add that, or use freeSpaceAbove',
      fieldPath: '.minReclaim',
    },
    {
      rule: '!has(self.minReclaim) || !has(self.freeSpaceAbove) || !isQuantity(string(self.minReclaim)) || !isQuantity(string(self.freeSpaceAbove)) || !quantity(string(self.minReclaim)).isGreaterThan(quantity(string(self.freeSpaceAbove)))',
      message: 'rule.minReclaim is larger than freeSpaceAbove and would never count: make it smaller',
      fieldPath: '.minReclaim',
    },
  ),
);

export const ttlSecondsAfterFinished = optionalInt32(
  'The object is deleted this many seconds after it has finished. Absent: never.',
  { minimum: 0 },
);

const same = (field: string): string =>
  `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`;

export const EtcdDefragSpecSchema = Type.Object(
  {
    clusterRef: clusterReference(),
    rule: defragRule,
    ttlSecondsAfterFinished,
  },
  cel({
    rule: `self.clusterRef == oldSelf.clusterRef && ${same('rule')}`,
    message: 'an EtcdDefrag runs once: only ttlSecondsAfterFinished can change. Create another EtcdDefrag',
  }),
);

const MemberOutcomeSchema = Type.Object({
  name: Type.String(),
  role: optionalText('leader or follower.'),
  outcome: optionalText('Pending, Skipped, Defragmented or Failed.'),
  reason: optionalText('BelowThreshold, MemberGone, RPCError or AfterSizeUnavailable.'),
  message: optionalText('What went wrong, as etcd reports it.'),
  attempts: optionalInt32('How often the operator asked the member in vain.'),
  dbSizeBefore: Type.Optional(Type.Integer({ format: 'int64' })),
  dbSizeAfter: Type.Optional(Type.Integer({ format: 'int64' })),
  reclaimedBytes: Type.Optional(Type.Integer({ format: 'int64' })),
  finishedAt: Type.Optional(Type.String({ format: 'date-time' })),
});

export const EtcdDefragStatusSchema = Type.Object({
  phase: optionalText('Pending, Running, Complete or Failed.'),
  admittedAt: optionalTime('When it was its turn among the EtcdDefrags of its cluster.'),
  startedAt: Type.Optional(Type.String({ format: 'date-time' })),
  completedAt: Type.Optional(Type.String({ format: 'date-time' })),
  defragmented: Type.Optional(Type.Integer({ format: 'int32' })),
  members: Type.Optional(
    Type.Array(MemberOutcomeSchema, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
  ),
  waitingFor: optionalText('Why no member is defragmented now.'),
  conditions: Type.Optional(ConditionsSchema),
});

export type DefragRule = NonNullable<Accepted<typeof EtcdDefragSpecSchema>['rule']>;
export type MemberOutcome = Accepted<typeof MemberOutcomeSchema>;
export type EtcdDefragStatus = Accepted<typeof EtcdDefragStatusSchema>;
export type EtcdDefrag = CustomObject<'EtcdDefrag', typeof EtcdDefragSpecSchema, typeof EtcdDefragStatusSchema>;

export const etcdDefragKind: Kind = {
  names: namesOf(etcdDefrags, 'etcddf'),
  description: 'A one-time defragmentation of the members of an EtcdCluster.',
  spec: EtcdDefragSpecSchema,
  status: EtcdDefragStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Defragmented', type: 'integer', jsonPath: '.status.defragmented' },
  ],
};

/** The cache index of EtcdDefrags by the cluster in their spec. */
export const defragsByCluster = {
  name: BY_CLUSTER,
  of: ({ spec }: EtcdDefrag): string | undefined => spec.clusterRef.name,
} as const;
