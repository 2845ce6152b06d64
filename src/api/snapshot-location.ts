/** Where a snapshot is put, or taken from. */
import Type, { type Static } from 'typebox';
import { cel } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { localReference } from './text.ts';

const MAX_PATH = 1024;

/** What a decoder would make of it, once or twice over, as far as it matters here. */
const decoded = "self.lowerAscii().replace('%25', '%').replace('%2e', '.').replace('%2f', '/')";

/** No step out of the place that was given: neither an absolute path, nor "..", nor what a decoder would make one of. */
const confined = (field: string) =>
  cel(
    {
      rule: String.raw`!self.matches(r'[\p{Cc}\\]') && !self.lowerAscii().matches('%(25)?([01][0-9a-f]|5c|7f)')`,
      message: `${field} has a control character or a backslash, perhaps written with %: remove it`,
    },
    {
      rule: `!${decoded}.startsWith('/') && !${decoded}.contains('//') && !${decoded}.split('/').exists(part, part == '..' || part == '.')`,
      message: `${field} must stay inside: no leading or double /, no . or .. between slashes`,
      messageExpression: `'${field} ' + self + ' must stay inside: no leading or double /, no . or .. between slashes'`,
    },
  );

const S3Schema = Type.Object(
  {
    endpoint: Type.String({ minLength: 1, description: 'The URL of the S3 service.' }),
    bucket: Type.String({ minLength: 1, description: 'The bucket.' }),
    key: Type.Optional(
      Type.String({
        maxLength: MAX_PATH,
        description: 'For a destination, what the object’s key begins with; for a source, the exact key.',
        ...confined('s3.key'),
      }),
    ),
    region: Type.Optional(Type.String({ description: 'us-east-1 when absent.' })),
    forcePathStyle: Type.Optional(
      Type.Boolean({ description: 'endpoint/bucket/key instead of bucket.endpoint/key; most look-alikes need it.' }),
    ),
    credentialsSecretRef: localReference(
      's3.credentialsSecretRef',
      'A Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.',
    ),
  },
  { description: 'A bucket of S3 or something that speaks like it.' },
);

const ClaimSchema = Type.Object(
  {
    claimName: Type.String({ minLength: 1, description: 'The PersistentVolumeClaim, in the same namespace.' }),
    subPath: Type.Optional(
      Type.String({
        maxLength: MAX_PATH,
        description: 'For a destination, a folder; for a source, the exact file.',
        ...confined('pvc.subPath'),
      }),
    ),
  },
  { description: 'A volume.' },
);

export const SnapshotLocationSchema = Type.Object(
  { s3: Type.Optional(S3Schema), pvc: Type.Optional(ClaimSchema) },
  cel({
    rule: 'has(self.s3) != has(self.pvc)',
    message: 'name exactly one place for the snapshot: either s3 or pvc',
  }),
);

export type SnapshotLocation = DeepReadonly<Static<typeof SnapshotLocationSchema>>;
