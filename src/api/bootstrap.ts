/** The data that a cluster is bootstrapped with. */
import Type from 'typebox';
import { agentResources } from './agent-resources.ts';
import { cel } from './cel.ts';
import { optionalFlag, optionalInt64, optionalObject, optionalText } from './optional.ts';
import { EncryptionSchema, oneLocation, SnapshotLocationSchema } from './snapshot-location.ts';

/** More than a week of 1,500 writes a second: no revision that a client has seen is used a second time. */
export const DEFAULT_BUMP = 1_000_000_000;

/** What `status.artifact.checksum` of the EtcdSnapshot has. */
const CHECKSUM = '^sha256:[0-9a-f]{64}$';

const RestoreSourceSchema = Type.Object(
  {
    ...SnapshotLocationSchema.properties,
    checksum: optionalText(
      'The checksum that the stored object must have, as status.artifact.checksum of an EtcdSnapshot: anything else that is stored there is not restored. Absent: its manifest and the digest at its end are verified.',
      { pattern: CHECKSUM },
    ),
  },
  cel(...oneLocation),
);

const named = (store: string, field: string, what: string) => ({
  rule: `!has(self.source.${store}) || (has(self.source.${store}.${field}) && self.source.${store}.${field} != '')`,
  message: `bootstrap.restore.source.${store}.${field} is empty: name the ${what} to restore from`,
  fieldPath: `.source.${store}.${field}`,
});

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
