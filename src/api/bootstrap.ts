/** What a cluster begins with. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { EncryptionSchema, SnapshotLocationSchema } from './snapshot-location.ts';

/** More than a week of 1,500 writes a second: no revision that anybody has seen comes twice. */
export const DEFAULT_BUMP = 1_000_000_000;

const named = (store: string, field: string, what: string) => ({
  rule: `!has(self.source.${store}) || (has(self.source.${store}.${field}) && self.source.${store}.${field} != '')`,
  message: `bootstrap.restore.source.${store}.${field} is empty: name the ${what} to restore from`,
  fieldPath: `.source.${store}.${field}`,
});

export const restoreFields = {
  source: SnapshotLocationSchema,
  encryption: EncryptionSchema,
  bumpRevision: Type.Optional(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: `By how much revisions are raised, so that none that a client has seen comes a second time; the old ones count as compacted. 0: not at all, and watchers may miss changes. Absent: ${DEFAULT_BUMP}.`,
    }),
  ),
} as const;

export const BootstrapSchema = Type.Object(
  {
    restore: Type.Optional(
      Type.Object(restoreFields, {
        description: 'The cluster begins with the data of a snapshot.',
        ...cel(
          named('s3', 'key', 'object'),
          named('gcs', 'key', 'object'),
          named('azure', 'key', 'object'),
          named('pvc', 'subPath', 'file'),
        ),
      }),
    ),
  },
  { description: 'What the cluster begins with. Cannot be added, removed or changed later.' },
);
