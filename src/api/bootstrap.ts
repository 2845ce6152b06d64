/** The data that a cluster is bootstrapped with. */
import { cel } from './cel.ts';
import { optionalInt64, optionalObject } from './optional.ts';
import { EncryptionSchema, SnapshotLocationSchema } from './snapshot-location.ts';

/** More than a week of 1,500 writes a second: no revision that a client has seen is used a second time. */
export const DEFAULT_BUMP = 1_000_000_000;

const named = (store: string, field: string, what: string) => ({
  rule: `!has(self.source.${store}) || (has(self.source.${store}.${field}) && self.source.${store}.${field} != '')`,
  message: `bootstrap.restore.source.${store}.${field} is empty: name the ${what} to restore from`,
  fieldPath: `.source.${store}.${field}`,
});

export const restoreFields = {
  source: SnapshotLocationSchema,
  encryption: EncryptionSchema,
  bumpRevision: optionalInt64(
    `By how much the revision is increased, so that no revision that a client has seen is used a second time; older revisions are marked as compacted. 0: not at all, and watchers may miss changes. Absent: ${DEFAULT_BUMP}.`,
    { minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
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
