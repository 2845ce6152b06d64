/** The data that a cluster is bootstrapped with. */
import Type from 'typebox';
import { agentResources } from './agent-resources.ts';
import { cel, unvalidated } from './cel.ts';
import type { Accepted } from './meta.ts';
import { optionalFlag, optionalInt64, optionalObject, optionalReference, optionalText } from './optional.ts';
import { EncryptionSchema, oneStore, SnapshotLocationSchema } from './snapshot-location.ts';

/** More than a week of 1,500 writes a second: no revision that a client has seen is used a second time. */
export const DEFAULT_BUMP = 1_000_000_000;

/** What `status.artifact.checksum` of the EtcdSnapshot has. */
const CHECKSUM = '^sha256:[0-9a-f]{64}$';

/** `namespace/name`, or the name alone. */
const CLUSTER_NAME = '^([a-z0-9][-a-z0-9]*/)?[a-z0-9][-a-z0-9.]*$';

const latest = optionalObject(
  'Restore the newest good snapshot, instead of one that is named. With scheduleRef: the newest that the schedule has stored, unless a restore drill found that it cannot be restored; then the newest that a drill restored. With s3, gcs, azure or pvc, whose key or subPath is a folder then and may be empty: the newest in and below that folder that is whole, by the manifests that are stored there.',
  {
    scheduleRef: optionalReference(
      'bootstrap.restore.source.latest.scheduleRef',
      'The EtcdSnapshotSchedule, in the same namespace. Its store and its encryption are used.',
    ),
    cluster: optionalText(
      'Only snapshots of this cluster, as name or namespace/name. Needed where the folder has snapshots of several clusters.',
      { pattern: CLUSTER_NAME, maxLength: 317 },
    ),
  },
);

const RestoreSourceSchema = Type.Object(
  {
    ...SnapshotLocationSchema.properties,
    snapshotRef: optionalReference(
      'bootstrap.restore.source.snapshotRef',
      'The EtcdSnapshot to restore, in the same namespace. Its store, its checksum and its encryption are used. If it has not finished, the cluster waits for it.',
    ),
    latest,
    copy: Type.Optional(
      Type.Object(SnapshotLocationSchema.properties, {
        description:
          'A copy of the same object, with the same encryption: restored when the first one cannot be read, or is damaged. Needs checksum. With snapshotRef, the copy of that EtcdSnapshot is used.',
        ...oneStore,
      }),
    ),
    checksum: optionalText(
      'The checksum that the stored object must have, as status.artifact.checksum of an EtcdSnapshot: anything else that is stored there is not restored. Absent: its manifest and the digest at its end are verified.',
      { pattern: CHECKSUM },
    ),
  },
  cel(
    {
      rule: '[has(self.s3), has(self.gcs), has(self.azure), has(self.pvc), has(self.snapshotRef), has(self.latest) && has(self.latest.scheduleRef)].filter(named, named).size() == 1',
      message: 'set exactly one of s3, gcs, azure, pvc, snapshotRef and latest.scheduleRef',
    },
    {
      rule: '!has(self.latest) || !(has(self.snapshotRef) || has(self.checksum))',
      message: 'latest cannot be combined with snapshotRef or checksum: they name one snapshot',
    },
    {
      rule: '!has(self.copy) || has(self.checksum)',
      message: 'copy needs checksum, so that it is the same snapshot; it cannot be combined with snapshotRef or latest',
    },
    {
      rule: '!has(self.checksum) || !has(self.snapshotRef)',
      message: 'checksum cannot be combined with snapshotRef: that of the EtcdSnapshot is demanded',
    },
    {
      rule: '!has(self.latest) || !has(self.latest.scheduleRef) || !has(self.latest.cluster)',
      message: 'latest.cluster cannot be combined with latest.scheduleRef: a schedule has one cluster',
    },
  ),
);

const named = (store: string, field: string, what: string) => ({
  rule: `!has(self.source.${store}) || has(self.source.latest) || (has(self.source.${store}.${field}) && self.source.${store}.${field} != '')`,
  message: `bootstrap.restore.source.${store}.${field} is empty: name the ${what} to restore from`,
  fieldPath: `.source.${store}.${field}`,
});

export type RestoreSource = Accepted<typeof RestoreSourceSchema>;

/** The snapshot that a cluster is restored from, in its status. */
export const chosenSource = optionalObject(
  'The snapshot that the cluster is restored from, where the spec does not name the object itself.',
  {
    snapshot: optionalText('The EtcdSnapshot that bootstrap.restore.source referred to.'),
    source: Type.Optional(
      unvalidated(
        Type.Object(RestoreSourceSchema.properties, {
          description: 'Where it is stored, recorded before the first member is created.',
        }),
      ),
    ),
    encryption: Type.Optional(unvalidated(EncryptionSchema)),
    key: optionalText('The stored object that was the newest good one when the first member restored it.'),
    passedOver: optionalInt64('Number of newer stored objects that were damaged.'),
  },
);

export const restoreFields = {
  source: RestoreSourceSchema,
  encryption: EncryptionSchema,
  bumpRevision: optionalInt64(
    `By how much the revision is increased, so that no revision that a client has seen is used a second time; older revisions are marked as compacted. 0: not at all, and watchers may miss changes. Absent: ${DEFAULT_BUMP}.`,
    { minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  ),
  resetRootPassword: optionalFlag(
    'For a snapshot whose root password is unknown: its user root is replaced by one with the password of spec.auth, which must be set. Other users and all roles stay as they are. Absent: false, and the password of the snapshot is needed.',
  ),
  resources: agentResources(
    'CPU and memory of the container that restores. Absent: requests of 100m and 128Mi, and a memory limit of at least 1Gi, an eighth of storage.size up to 4Gi, or that of the members.',
  ),
} as const;

export const bootstrap = optionalObject(
  'The data that the cluster is bootstrapped with; empty when absent. Cannot be added, removed or changed later.',
  {
    restore: optionalObject(
      'Restore a snapshot: the cluster is bootstrapped with its data.',
      restoreFields,
      cel(
        named('s3', 'key', 'object'),
        named('gcs', 'key', 'object'),
        named('azure', 'key', 'object'),
        named('pvc', 'subPath', 'file'),
      ),
    ),
  },
);
