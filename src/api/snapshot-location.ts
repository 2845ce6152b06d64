/** Where a snapshot is put, or taken from. */
import Type, { type Static } from 'typebox';
import { cel } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { localReference } from './text.ts';

const MAX_PATH = 1024;
const KEY_CHARACTERS = String.raw`^[-A-Za-z0-9_./=+@:,!~*()]*$`;
const PATH_CHARACTERS = '^[-A-Za-z0-9_./]*$';

/** No step out of the place that was given: neither an absolute path, nor "..", nor what a decoder would make one of. */
const confined = (field: string, characters: string, allowed: string) =>
  cel(
    {
      rule: `self.matches('${characters}')`,
      message: `${field} has characters that are not allowed: use ${allowed}`,
      messageExpression: `'${field} ' + self + ' has characters that are not allowed: use ${allowed}'`,
    },
    {
      rule: "!self.startsWith('/') && !self.split('/').exists(part, part == '..' || part == '.')",
      message: `${field} must stay inside: no leading /, no . or .. between slashes`,
      messageExpression: `'${field} ' + self + ' must stay inside: no leading /, no . or .. between slashes'`,
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
        ...confined('s3.key', KEY_CHARACTERS, 'letters, digits and - _ . / = + @ : , ! ~ * ( )'),
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
        ...confined('pvc.subPath', PATH_CHARACTERS, 'letters, digits and - _ . /'),
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
