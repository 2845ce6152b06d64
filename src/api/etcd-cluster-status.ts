/** What the operator answers about an EtcdCluster. */
import Type, { type Static } from 'typebox';
import { unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import type { DeepReadonly } from './meta.ts';
import { StorageTargetSchema } from './storage.ts';
import { templateFields } from './template.ts';
import { quantity } from './text.ts';

export const TargetSchema = unvalidated(
  Type.Object({
    replicas: Type.Integer({ format: 'int32' }),
    version: Type.String(),
    storage: StorageTargetSchema,
    ...templateFields,
  }),
);

export const ROLES = ['leader', 'follower', 'learner', 'unknown'] as const;

/** Figures are in coarse steps: a cluster whose clients write must not cause a write of its own status. */
export const MemberEntrySchema = Type.Object({
  name: Type.String({ description: 'The EtcdMember.' }),
  id: Type.Optional(Type.String({ description: 'The id in etcd.' })),
  role: Type.Enum([...ROLES], { type: 'string', description: 'unknown: it did not answer.' }),
  version: Type.Optional(Type.String({ description: 'What it runs.' })),
  alarms: Type.Optional(Type.Array(Type.String(), { description: 'NOSPACE, CORRUPT: what etcd complains about.' })),
  since: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Since when it has this role. Times without an answer do not count.',
    }),
  ),
  databaseSize: Type.Optional(
    quantity({
      description: 'The size of the database, rounded up to a power of two. Metrics of etcd have the exact figure.',
    }),
  ),
  quotaUsedPercent: Type.Optional(
    Type.Integer({ format: 'int32', description: 'How much of the quota is used, in steps of ten.' }),
  ),
});

const parts = (what: string) => ({
  client: Type.Optional(Type.String({ description: `${what}, for the client port.` })),
  peer: Type.Optional(Type.String({ description: `${what}, for the port of the peers.` })),
});

export const EtcdClusterStatusSchema = Type.Object({
  readyMembers: Type.Optional(
    Type.Integer({ format: 'int32', description: 'Members that vote and are ready to serve.' }),
  ),
  updatedMembers: Type.Optional(
    Type.Integer({ format: 'int32', description: 'Members that were made from the present spec.' }),
  ),
  brokenMembers: Type.Optional(
    Type.Integer({ format: 'int32', description: 'Members that will not come back by themselves.' }),
  ),
  quorum: Type.Optional(
    Type.Object(
      {
        needed: Type.Integer({ format: 'int32', description: 'Votes that a decision needs.' }),
        healthy: Type.Integer({ format: 'int32', description: 'Voters that are ready.' }),
        margin: Type.Integer({ format: 'int32', description: 'Voters that may still fail. Below zero: no quorum.' }),
      },
      { description: 'Whether the cluster can decide, and how far it is from not being able to.' },
    ),
  ),
  leader: Type.Optional(Type.String({ description: 'The EtcdMember that leads.' })),
  version: Type.Optional(Type.String({ maxLength: 32, description: 'The lowest version that a member runs.' })),
  members: Type.Optional(
    Type.Array(MemberEntrySchema, {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      description: 'Each member, as it was when the operator last looked.',
    }),
  ),
  selector: Type.Optional(
    Type.String({ description: 'The label selector of the members, for the scale subresource.' }),
  ),
  clusterID: Type.Optional(
    Type.String({
      description: 'The id of the etcd cluster, recorded once: after that nothing is ever bootstrapped again.',
    }),
  ),
  clusterToken: Type.Optional(
    Type.String({ description: 'The initial cluster token of every member, recorded once.' }),
  ),
  authEnabled: Type.Optional(Type.Boolean({ description: 'Authentication was turned on, recorded once.' })),
  trust: Type.Optional(
    Type.Object(
      {
        ...parts('Digest'),
        assumed: Type.Optional(
          Type.Object(parts('Digest'), {
            description: 'What members of an earlier operator are taken to trust: their Pods do not say it.',
          }),
        ),
        commanded: Type.Optional(
          Type.Object(parts('Value'), { description: 'The last values of the annotation that asks for a rotation.' }),
        ),
        kept: Type.Optional(
          Type.Array(Type.String(), { description: 'Secrets with trust of before, until no Pod mounts them.' }),
        ),
      },
      {
        description:
          'Digests of the authorities that members trust which start from now on. Recorded before any does: nothing that others have signed is given to them.',
      },
    ),
  ),
  membersNamed: Type.Optional(
    Type.Integer({
      format: 'int64',
      description: 'How many member names were ever given out. The name of a member follows from this and the uid.',
    }),
  ),
  defaults: Type.Optional(
    Type.String({
      description:
        'Which set of defaults the cluster was created with, recorded once. Absent: those of the earlier operator.',
    }),
  ),
  repair: Type.Optional(
    Type.Object(
      {
        count: Type.Integer({
          format: 'int32',
          description: 'Replacements in a row that did not help: each of a member that was itself new.',
        }),
        last: Type.String({ format: 'date-time', description: 'When the last one began.' }),
        generation: Type.Integer({ format: 'int64', description: 'An edit of the spec since then ends the counting.' }),
      },
      { description: 'Members that the operator replaced because they would not have come back.' },
    ),
  ),
  refusedChange: Type.Optional(
    Type.Object(
      {
        change: Type.String({ description: 'What etcd refused.' }),
        restarts: Type.Array(
          Type.Object({
            member: Type.String({ description: 'The EtcdMember.' }),
            pod: Type.String({ description: 'The uid of the Pod that is deleted.' }),
            at: Type.String({ format: 'date-time', description: 'When this was decided.' }),
          }),
        ),
      },
      {
        description:
          'Members that the operator restarted because every voter refused a membership change although all were healthy: each at most once for a change.',
      },
    ),
  ),
  observed: Type.Optional(TargetSchema),
  progressDeadline: Type.Optional(
    Type.String({ format: 'date-time', description: 'When the change under way counts as late.' }),
  ),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdClusterStatus = DeepReadonly<Static<typeof EtcdClusterStatusSchema>>;
export type MemberEntry = DeepReadonly<Static<typeof MemberEntrySchema>>;
export type Target = DeepReadonly<Static<typeof TargetSchema>>;
