/** EtcdSnapshot: a one-time snapshot of a cluster. */
import Type from 'typebox';
import { type CelRule, cel, unvalidated } from './cel.ts';
import { ConditionsSchema } from './conditions.ts';
import { type Kind, namesOf } from './crd.ts';
import type { Accepted, CustomObject } from './meta.ts';
import { etcdSnapshots, MAX_SNAPSHOT_NAME } from './names.ts';
import { optionalInt64, optionalObject, optionalText, optionalTime } from './optional.ts';
import {
  COPY_DESCRIPTION,
  copyRule,
  SnapshotLocationSchema,
  snapshotResources,
  storedAs,
} from './snapshot-location.ts';
import { atomic, localReference } from './text.ts';

export const clusterReference = () => localReference('clusterRef', 'The EtcdCluster, in the same namespace.');

/** References in a status are not validated: the operator could not report an object that older rules had accepted. */
export const activeObjects = (description: string) =>
  Type.Optional(Type.Array(unvalidated(localReference('active[]', '')), { ...atomic, description }));

/** Jobs and labels are named after the object. Objects that were accepted without this rule stay editable. */
export const nameRule = (longest: number, because: string): CelRule => ({
  rule: `oldSelf.hasValue() || size(self.metadata.name) <= ${longest}`,
  optionalOldSelf: true,
  message: `the name must have at most ${longest} characters: ${because}`,
  messageExpression: `'the name ' + self.metadata.name + ' must have at most ${longest} characters: ${because}'`,
});

export const EtcdSnapshotSpecSchema = Type.Object(
  {
    clusterRef: clusterReference(),
    destination: SnapshotLocationSchema,
    ...storedAs,
    copyTo: optionalObject(COPY_DESCRIPTION, { destination: SnapshotLocationSchema }),
    resources: snapshotResources(),
  },
  cel(
    {
      rule: 'self == oldSelf',
      message: 'a snapshot is taken once and its spec cannot change: create another EtcdSnapshot',
    },
    copyRule,
  ),
);

const count = (description: string) => optionalInt64(description, { minimum: 0 });

export const ArtifactSchema = Type.Object({
  uri: Type.String({ description: 'Where the snapshot is stored.' }),
  sizeBytes: count('Size of the stored object, after compression.'),
  checksum: optionalText('Checksum of the stored object: sha256: and the hex digest.'),
  databaseBytes: count('Size of the database, as etcdctl snapshot save would write it.'),
  revision: count(
    'The etcd revision just before the snapshot: it has every write up to this revision, and perhaps later ones.',
  ),
  totalKeys: count('Number of keys at that revision.'),
  etcdVersion: optionalText('The version of the member that it was taken from.'),
  clusterID: optionalText('The cluster ID in etcd.'),
  member: optionalText('The member that it was taken from.'),
  compression: optionalText('None or Zstd.'),
  encrypted: Type.Optional(Type.Boolean()),
  takenAt: optionalTime('When the snapshot stream started.'),
  durationMilliseconds: count('How long it took to stream and store.'),
});

export const EtcdSnapshotStatusSchema = Type.Object({
  phase: optionalText('Pending, Started, Complete or Failed.'),
  startTime: optionalTime('When its Job was created.'),
  completionTime: optionalTime('When it was known to be stored, or to have failed.'),
  streamsFrom: Type.Optional(
    Type.Array(Type.String(), {
      ...atomic,
      description:
        'Until it has finished: the members that its agent streams from, each only when the one before it fails. None of them is to be defragmented meanwhile.',
    }),
  ),
  artifact: Type.Optional(ArtifactSchema),
  copy: optionalObject('The copy at spec.copyTo.', {
    uri: optionalText('Where it is. Absent: it is not there yet.'),
    time: optionalTime('When it was known to be there.'),
    attempts: count('Number of attempts that failed.'),
    reason: optionalText('Why the last attempt failed.'),
    message: Type.Optional(Type.String()),
    nextAttemptTime: optionalTime(
      'When it is tried again. Absent with a reason: it is not, because the snapshot is gone.',
    ),
  }),
  conditions: Type.Optional(ConditionsSchema),
});

export type EtcdSnapshotSpec = Accepted<typeof EtcdSnapshotSpecSchema>;
export type Artifact = Accepted<typeof ArtifactSchema>;
export type EtcdSnapshotStatus = Accepted<typeof EtcdSnapshotStatusSchema>;

/** Stored, and its copy is still to be made. */
export const isCopyPending = ({ spec, status }: EtcdSnapshot): boolean => {
  const { phase, artifact, copy } = status ?? {};
  const hasGivenUp = copy?.reason !== undefined && copy.nextAttemptTime === undefined;
  return spec.copyTo !== undefined && phase === 'Complete' && !!artifact && copy?.uri === undefined && !hasGivenUp;
};

export type EtcdSnapshot = CustomObject<'EtcdSnapshot', typeof EtcdSnapshotSpecSchema, typeof EtcdSnapshotStatusSchema>;

export const etcdSnapshotKind: Kind = {
  names: namesOf(etcdSnapshots, 'etcdsnap'),
  description: 'A one-time snapshot of an EtcdCluster.',
  spec: EtcdSnapshotSpecSchema,
  status: EtcdSnapshotStatusSchema,
  columns: [
    { name: 'Cluster', type: 'string', jsonPath: '.spec.clusterRef.name' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Revision', type: 'integer', jsonPath: '.status.artifact.revision', priority: 1 },
    { name: 'Size', type: 'integer', jsonPath: '.status.artifact.sizeBytes', priority: 1 },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  ],
  rules: [nameRule(MAX_SNAPSHOT_NAME, 'its Job is named after it, and that name is a label value')],
};
