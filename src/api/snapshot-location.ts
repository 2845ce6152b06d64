/** Where a snapshot is put, or taken from. */
import Type, { type Static } from 'typebox';
import { cel } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { localReference, subdomain } from './text.ts';

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

const objectKey = (field: string) =>
  Type.Optional(
    Type.String({
      maxLength: MAX_PATH,
      description: 'For a destination, what the object’s key begins with; for a source, the exact key.',
      ...confined(field),
    }),
  );

/** Without a Secret, the agent's Pod has what its cloud gives to this ServiceAccount. Its token is never mounted. */
const serviceAccountName = () =>
  Type.Optional(
    subdomain(
      'Whose cloud identity is used when there is no credentialsSecretRef: a ServiceAccount of the same namespace.',
    ),
  );

/** Plain text only between processes of one machine: for tests and for what stands in for a cloud. */
const endpointUrl = (field: string, description: string) =>
  Type.String({
    minLength: 1,
    maxLength: MAX_PATH,
    description,
    ...cel({
      rule: "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",
      message: `${field} must be a URL such as https://storage.example.com, without user, question mark or fragment`,
    }),
  });

const S3Schema = Type.Object(
  {
    endpoint: endpointUrl('s3.endpoint', 'The URL of the S3 service.'),
    bucket: Type.String({ minLength: 1, description: 'The bucket.' }),
    key: objectKey('s3.key'),
    region: Type.Optional(Type.String({ description: 'us-east-1 when absent.' })),
    forcePathStyle: Type.Optional(
      Type.Boolean({ description: 'endpoint/bucket/key instead of bucket.endpoint/key; most look-alikes need it.' }),
    ),
    credentialsSecretRef: Type.Optional(
      localReference(
        's3.credentialsSecretRef',
        'A Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and perhaps AWS_SESSION_TOKEN. Absent: what the Pod is given by its cloud, see serviceAccountName.',
      ),
    ),
    serviceAccountName: serviceAccountName(),
    caSecretRef: Type.Optional(
      localReference('s3.caSecretRef', 'A Secret whose key ca.crt is trusted besides the well-known authorities.'),
    ),
    serverSideEncryption: Type.Optional(
      Type.Object(
        {
          algorithm: Type.Enum(['AES256', 'aws:kms'], { type: 'string' }),
          kmsKeyId: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
        },
        {
          description: 'What the service is asked to encrypt objects with.',
          ...cel({
            rule: "!has(self.kmsKeyId) || self.algorithm == 'aws:kms'",
            message: 's3.serverSideEncryption.kmsKeyId needs the algorithm aws:kms',
          }),
        },
      ),
    ),
    checksums: Type.Optional(
      Type.Enum(['WhenRequired', 'WhenSupported'], {
        type: 'string',
        description:
          'Whether uploads carry checksums of the AWS SDK besides. Several look-alikes refuse them. Absent: WhenRequired.',
      }),
    ),
  },
  { description: 'A bucket of S3 or something that speaks like it.' },
);

const GcsSchema = Type.Object(
  {
    bucket: Type.String({ minLength: 1, description: 'The bucket.' }),
    key: objectKey('gcs.key'),
    endpoint: Type.Optional(endpointUrl('gcs.endpoint', 'Another service than Google’s own.')),
    credentialsSecretRef: Type.Optional(
      localReference(
        'gcs.credentialsSecretRef',
        'A Secret whose key credentials.json is the key file of a service account. Absent: what the Pod is given by its cloud.',
      ),
    ),
    serviceAccountName: serviceAccountName(),
  },
  { description: 'A bucket of Google Cloud Storage.' },
);

const AzureSchema = Type.Object(
  {
    container: Type.String({ minLength: 1, description: 'The container.' }),
    key: objectKey('azure.key'),
    account: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: 'The storage account. Absent: AZURE_STORAGE_ACCOUNT of the Secret.',
      }),
    ),
    endpoint: Type.Optional(
      endpointUrl('azure.endpoint', 'Another service than https://<account>.blob.core.windows.net.'),
    ),
    credentialsSecretRef: Type.Optional(
      localReference(
        'azure.credentialsSecretRef',
        'A Secret with AZURE_STORAGE_ACCOUNT and either AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or with AZURE_STORAGE_CONNECTION_STRING. Absent: what the Pod is given by its cloud.',
      ),
    ),
    serviceAccountName: serviceAccountName(),
  },
  { description: 'A container of Azure Blob Storage.' },
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
  {
    s3: Type.Optional(S3Schema),
    gcs: Type.Optional(GcsSchema),
    azure: Type.Optional(AzureSchema),
    pvc: Type.Optional(ClaimSchema),
  },
  cel({
    rule: '[has(self.s3), has(self.gcs), has(self.azure), has(self.pvc)].filter(named, named).size() == 1',
    message: 'name exactly one place for the snapshot: s3, gcs, azure or pvc',
  }),
);

export const COMPRESSION = ['None', 'Zstd'] as const;
/** How a snapshot is stored. */
export const storedAs = {
  compression: Type.Optional(
    Type.Enum([...COMPRESSION], { type: 'string', description: 'Absent: None, as etcdctl would write it.' }),
  ),
  encryption: Type.Optional(
    Type.Object(
      {
        keySecretRef: localReference(
          'encryption.keySecretRef',
          'A Secret whose key named "key" is 32 random bytes, as they are or as base64 or hex. Without it nobody can restore.',
        ),
      },
      { description: 'Encrypted before it leaves the agent, with AES-256-GCM.' },
    ),
  ),
} as const;
export const EncryptionSchema = storedAs.encryption;

export type SnapshotLocation = DeepReadonly<Static<typeof SnapshotLocationSchema>>;
