/** The status of an EtcdCluster. */
import Type from 'typebox';
import { chosenSource } from './bootstrap.ts';
import { unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import { remedyStatus } from './maintenance.ts';
import type { Accepted } from './meta.ts';
import { optionalFlag, optionalInt32, optionalInt64, optionalObject, optionalText, optionalTime } from './optional.ts';
import { StorageTargetSchema } from './storage.ts';
import { TemplateSchema, templateFields } from './template.ts';
import { quantity } from './text.ts';

export const TargetSchema = unvalidated(
  Type.Object({
    replicas: Type.Integer({ format: 'int32' }),
    version: Type.String(),
    storage: StorageTargetSchema,
    ...templateFields,
  }),
);

/** Figures are in coarse steps: writes by etcd clients must not cause writes of the status. */
export const MemberEntrySchema = Type.Object({
  name: Type.String({ description: 'The EtcdMember.' }),
  id: optionalText('The member ID in etcd.'),
  role: Type.Enum(['leader', 'follower', 'learner', 'unknown'], {
    type: 'string',
    description: 'unknown: the member did not respond.',
  }),
  version: optionalText('The etcd version that the member runs.'),
  outdated: Type.Optional(
    Type.Array(Type.String(), { description: 'The fields of the spec that the running member does not have yet.' }),
  ),
  node: optionalText('The node of its Pod.'),
  zone: optionalText('The zone of that node.'),
  lag: optionalInt64(
    'By how many raft entries the member is behind, rounded down to a power of ten. Absent below a thousand.',
  ),
  alarms: Type.Optional(
    Type.Array(Type.String(), { description: 'Alarms of etcd: NOSPACE (database space exceeded) or CORRUPT.' }),
  ),
  since: optionalTime('Since when the member has this role. Times without a response do not count.'),
  databaseSize: Type.Optional(
    quantity({
      description: 'The size of the database, rounded up to a power of two. Metrics of etcd have the exact figure.',
    }),
  ),
  quotaUsedPercent: optionalInt32('Percentage of the database quota that is used, in steps of ten.'),
});

/** More than back-off allows in an hour, unless a user resets it with an edit again and again. */
export const MAX_RECENT = 100;

const parts = (what: string) => ({
  client: optionalText(`${what}, for the client port.`),
  peer: optionalText(`${what}, for the peer port.`),
});

export const EtcdClusterStatusSchema = Type.Object({
  readyMembers: optionalInt32('Number of voters that are ready.'),
  updatedMembers: optionalInt32('Number of members that run with the current spec.'),
  brokenMembers: optionalInt32('Number of members that will not recover by themselves.'),
  quorum: optionalObject('Whether the cluster has a quorum, and how many more failures it tolerates.', {
    needed: Type.Integer({ format: 'int32', description: 'Number of voters that make up a quorum.' }),
    healthy: Type.Integer({ format: 'int32', description: 'Number of voters that are ready.' }),
    margin: Type.Integer({
      format: 'int32',
      description: 'How many more voters may fail. Below zero: the quorum is lost.',
    }),
  }),
  leader: optionalText('The EtcdMember that is the leader.'),
  version: optionalText('The lowest version that a member runs.', { maxLength: 32 }),
  clusterVersion: optionalText(
    'The cluster version of etcd, such as 3.6.0, as all members last agreed on it: the minor whose features are in use. It rises when all members run a later minor.',
  ),
  members: Type.Optional(
    Type.Array(MemberEntrySchema, {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      description: 'Each member, as the operator observed it last.',
    }),
  ),
  quarantineReleased: optionalTime(
    'When the operator last deleted a quarantined PVC before its time, because a new member got no volume.',
  ),
  quarantinedVolumes: Type.Optional(
    Type.Array(
      Type.Object({
        name: Type.String({ description: 'The PersistentVolumeClaim.' }),
        member: Type.String({ description: 'The EtcdMember that it belonged to.' }),
        reason: Type.String({ description: 'Why the member was replaced; Removed, if it was scaled away or deleted.' }),
        until: Type.String({
          format: 'date-time',
          description: 'It is deleted after this time, if all voters are healthy.',
        }),
      }),
      {
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'PVCs of former members that are kept for a while, in case their data is needed.',
      },
    ),
  ),
  selector: optionalText('The label selector of the members, for the scale subresource.'),
  clusterID: optionalText(
    'The cluster ID in etcd, recorded once: after that the operator never bootstraps this cluster again.',
  ),
  clusterToken: optionalText('The initial cluster token of every member, recorded once.'),
  authEnabled: optionalFlag('Whether auth was enabled in etcd, recorded once.'),
  trust: optionalObject(
    'Digests of the CA bundles that members use from their next start on. Recorded before any member uses them: no member gets a certificate of another CA.',
    {
      ...parts('Digest'),
      assumed: optionalObject(
        'Digests of the CA bundles that members of an earlier operator are assumed to use: their Pods do not report it.',
        parts('Digest'),
      ),
      commanded: optionalObject(
        'The last observed values of the annotation that requests a CA rotation.',
        parts('Value'),
      ),
      kept: Type.Optional(
        Type.Array(Type.String(), {
          description: 'Secrets with previous CA bundles, kept until no Pod mounts them.',
        }),
      ),
    },
  ),
  restore: chosenSource,
  membersNamed: optionalInt64(
    'Number of members that were ever named. The name of a new member is derived from this number and the uid of the cluster.',
  ),
  defaults: optionalText(
    'Which set of defaults the cluster was created with, recorded once. Absent: those of the earlier operator.',
  ),
  repair: optionalObject('Members that the operator replaced because they would not have recovered.', {
    count: Type.Integer({
      format: 'int32',
      description:
        'Replacements in a row that failed: each replaced a member that was itself new. An hour in which all members were ready resets the count.',
    }),
    last: Type.String({ format: 'date-time', description: 'When the last replacement started.' }),
    since: optionalTime('When the first of them started. Absent: recorded by an earlier build.'),
    generation: Type.Integer({
      format: 'int64',
      description: 'The metadata.generation at that time: an edit of the spec resets the count.',
    }),
    recent: Type.Optional(
      Type.Array(
        Type.Object({
          member: Type.String({ description: 'The EtcdMember.' }),
          at: Type.String({ format: 'date-time', description: 'When its replacement started.' }),
        }),
        {
          maxItems: MAX_RECENT,
          description:
            'Replacements of the last hour in which a volume was discarded that may have been intact. The operator limits their number over all clusters.',
        },
      ),
    ),
  }),
  refusedChange: optionalObject(
    'Members that the operator restarted because every voter refused a membership change although all were healthy: each member at most once per change.',
    {
      change: Type.String({ description: 'The membership change that etcd refused.' }),
      restarts: Type.Array(
        Type.Object({
          member: Type.String({ description: 'The EtcdMember.' }),
          pod: Type.String({ description: 'The uid of the Pod that is deleted.' }),
          at: Type.String({ format: 'date-time', description: 'When the restart was decided.' }),
        }),
      ),
    },
  ),
  rollout: optionalObject(
    'The rollout of edits to running members. Absent: no edit was made since this operator observes the cluster, and members that differ from the spec wait for one.',
    {
      since: optionalTime('When the rollout in progress started. Absent: every member has the last edit.'),
      previous: Type.Optional(TemplateSchema),
      found: optionalText(
        'Digest of the spec at the time when the operator took the cluster over and could not adopt the spec, because the cluster is suspended or the spec is blocked: what it changes to later is an edit, what it was then is not. Absent once it is adopted.',
      ),
      checked: optionalText(
        'The minor, such as 3.7, for which the checks before a change have passed. Recorded before the first member in memory is replaced for it: its replacement joins with that minor.',
      ),
      failed: optionalObject(
        'The member that did not become ready with the edit. The rollout stops until the next edit.',
        {
          member: Type.String({ description: 'The EtcdMember.' }),
          at: Type.String({ format: 'date-time', description: 'When the operator gave up.' }),
          message: Type.String({ description: 'What the member lacked.' }),
          restartedAt: optionalText('The value of the annotation restarted-at then: another value is another attempt.'),
        },
      ),
    },
  ),
  turnAt: optionalTime(
    'When it was the turn of this cluster to restart members for an edit, because fewer clusters than the operator allows were doing so. Absent once every member has the edit.',
  ),
  defragmentation: optionalObject(
    'The member that is being defragmented, recorded before etcd is asked: no other member is disrupted meanwhile.',
    {
      member: Type.String({ description: 'The EtcdMember.' }),
      defrag: Type.String({ description: 'The EtcdDefrag that asked for it.' }),
      uid: Type.String({ description: 'Its uid.' }),
      attempt: Type.Integer({ format: 'int32', description: 'How often the member was asked, with this time.' }),
      startedAt: Type.String({ format: 'date-time', description: 'When etcd was asked.' }),
      dbSizeBefore: Type.Integer({ format: 'int64', description: 'The size of its database before, in bytes.' }),
    },
  ),
  remedy: remedyStatus,
  observed: Type.Optional(TargetSchema),
  progressDeadline: optionalTime('When the change in progress is reported as overdue.'),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdClusterStatus = Accepted<typeof EtcdClusterStatusSchema>;
export type MemberEntry = Accepted<typeof MemberEntrySchema>;
export type Target = Accepted<typeof TargetSchema>;
