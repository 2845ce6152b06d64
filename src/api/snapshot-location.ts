/** Where a snapshot is stored, or restored from. */
import Type from 'typebox';
import { agentResources } from './agent-resources.ts';
import { cel } from './cel.ts';
import type { Accepted } from './meta.ts';
import { optionalEnum, optionalFlag, optionalObject, optionalReference, optionalText } from './optional.ts';
import { localReference, subdomain } from './text.ts';

const MAX_PATH = 1024;

/** The path after percent-decoding, once or twice, of the characters that matter here. */
const decoded = "self.lowerAscii().replace('%25', '%').replace('%2e', '.').replace('%2f', '/')";

/** No path traversal: neither an absolute path, nor "..", nor one of them percent-encoded. */
const confined = (field: string) =>
  cel(
    {
      rule: String.raw`!self.matches(r'[\p{Cc}\\]') && !self.lowerAscii().matches('%(25)?([01][0-9a-f]|5c|7f)')`,
      message: `${field} has a control character or a backslash, perhaps percent-encoded: remove it`,
    },
    {
      rule: `!${decoded}.startsWith('/') && !${decoded}.contains('//') && !${decoded}.split('/').exists(part, part == '..' || part == '.')`,
      message: `${field} must be a relative path: no leading or double /, no . or .. between slashes`,
      messageExpression: `'${field} ' + self + ' must be a relative path: no leading or double /, no . or .. between slashes'`,
    },
  );

const objectKey = (field: string) =>
  optionalText('For a destination, the prefix of the object key; for a source, the exact key.', {
    maxLength: MAX_PATH,
    ...confined(field),
  });

/** Without a Secret, the agent's Pod uses the cloud identity of this ServiceAccount. Its Kubernetes token is never mounted. */
const serviceAccountName = () =>
  Type.Optional(
    subdomain(
      'The ServiceAccount, in the same namespace, whose cloud identity is used without credentialsSecretRef. The Pod has it in any case.',
    ),
  );

/** http:// is for tests and for emulators on the same machine. */
const endpointUrl = (field: string, description: string) =>
  Type.String({
    minLength: 1,
    maxLength: MAX_PATH,
    description,
    ...cel({
      rule: "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",
      message: `${field} must be a URL such as https://storage.example.com, without user, query or fragment`,
    }),
  });

const ownCA = (store: string) => ({
  caSecretRef: optionalReference(
    `${store}.caSecretRef`,
    'A Secret whose key ca.crt has CA certificates of the service. Whether the public CAs are trusted as well: see caMode.',
  ),
  caMode: optionalEnum(
    'Append: the CAs of caSecretRef are trusted in addition to the public ones. Replace: no other CA is trusted. Absent: Append.',
    ['Append', 'Replace'],
  ),
});
const needsCA = (store: string) =>
  cel({
    rule: "!has(self.caMode) || self.caMode == 'Append' || has(self.caSecretRef)",
    message: `${store}.caMode Replace needs ${store}.caSecretRef: without a CA no certificate would be trusted`,
  });

const s3 = optionalObject(
  'A bucket of Amazon S3 or of an S3-compatible service.',
  {
    endpoint: endpointUrl('s3.endpoint', 'The URL of the S3 service.'),
    bucket: Type.String({ minLength: 1, description: 'The bucket.' }),
    key: objectKey('s3.key'),
    region: optionalText('Absent: us-east-1.'),
    forcePathStyle: optionalFlag(
      'Use endpoint/bucket/key instead of bucket.endpoint/key; most S3-compatible services need it.',
    ),
    credentialsSecretRef: optionalReference(
      's3.credentialsSecretRef',
      'A Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and optionally AWS_SESSION_TOKEN. Absent: the cloud identity of the Pod, see serviceAccountName.',
    ),
    serviceAccountName: serviceAccountName(),
    ...ownCA('s3'),
    serverSideEncryption: optionalObject(
      'Server-side encryption that is requested from the service.',
      {
        algorithm: Type.Enum(['AES256', 'aws:kms'], { type: 'string' }),
        kmsKeyId: Type.Optional(Type.String({ minLength: 1, maxLength: 2048 })),
      },
      cel({
        rule: "!has(self.kmsKeyId) || self.algorithm == 'aws:kms'",
        message: 's3.serverSideEncryption.kmsKeyId needs the algorithm aws:kms',
      }),
    ),
    checksums: optionalEnum(
      'Whether uploads have the additional checksums of the AWS SDK. Several S3-compatible services refuse them. Absent: WhenRequired.',
      ['WhenRequired', 'WhenSupported'],
    ),
  },
  needsCA('s3'),
);

const gcs = optionalObject(
  'A bucket of Google Cloud Storage.',
  {
    bucket: Type.String({ minLength: 1, description: 'The bucket.' }),
    key: objectKey('gcs.key'),
    endpoint: Type.Optional(
      endpointUrl('gcs.endpoint', 'The URL of the service. Absent: that of Google Cloud Storage.'),
    ),
    credentialsSecretRef: optionalReference(
      'gcs.credentialsSecretRef',
      'A Secret whose key credentials.json is the key file of a service account. Its tokens are sent to hosts of googleapis.com only, or to the URL in its key GCS_ENDPOINT. Absent: the cloud identity of the Pod, see serviceAccountName.',
    ),
    serviceAccountName: serviceAccountName(),
    ...ownCA('gcs'),
  },
  needsCA('gcs'),
);

const azure = optionalObject(
  'A container of Azure Blob Storage.',
  {
    container: Type.String({ minLength: 1, description: 'The container.' }),
    key: objectKey('azure.key'),
    account: optionalText('The storage account. Absent: AZURE_STORAGE_ACCOUNT in the Secret.', {
      minLength: 1,
      maxLength: 64,
    }),
    endpoint: Type.Optional(
      endpointUrl('azure.endpoint', 'The URL of the service. Absent: https://<account>.blob.core.windows.net.'),
    ),
    credentialsSecretRef: optionalReference(
      'azure.credentialsSecretRef',
      'A Secret with AZURE_STORAGE_ACCOUNT and either AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or with AZURE_STORAGE_CONNECTION_STRING. A SAS token is sent to hosts of Azure only, or to the URL in its key AZURE_STORAGE_ENDPOINT. Absent: the cloud identity of the Pod, see serviceAccountName.',
    ),
    serviceAccountName: serviceAccountName(),
    ...ownCA('azure'),
  },
  needsCA('azure'),
);

const pvc = optionalObject('A PersistentVolumeClaim (PVC).', {
  claimName: Type.String({ minLength: 1, description: 'The PersistentVolumeClaim, in the same namespace.' }),
  subPath: optionalText('For a destination, a directory; for a source, the exact file.', {
    maxLength: MAX_PATH,
    ...confined('pvc.subPath'),
  }),
});

export const oneStore = cel({
  rule: '[has(self.s3), has(self.gcs), has(self.azure), has(self.pvc)].filter(named, named).size() == 1',
  message: 'set exactly one of s3, gcs, azure and pvc',
});
export const SnapshotLocationSchema = Type.Object({ s3, gcs, azure, pvc }, oneStore);

/** How a snapshot is stored. */
export const storedAs = {
  layout: optionalEnum(
    'Where objects are below the key prefix or subPath of the destination. ByCluster: in the folder <namespace>/<cluster>, so that several clusters and namespaces can share a bucket. Absent: Flat, without a folder; snapshots of the same name then compete for one object.',
    ['Flat', 'ByCluster'],
  ),
  compression: optionalEnum('Absent: None, the format of etcdctl snapshot save.', ['None', 'Zstd']),
  encryption: optionalObject(
    'Client-side encryption: the agent encrypts the snapshot with AES-256-GCM before the upload.',
    {
      keySecretRef: localReference(
        'encryption.keySecretRef',
        'A Secret whose key named "key" has 32 random bytes, raw or as base64 or hex; or whose key named "passphrase" has a text of at least 16 characters, which is stretched with scrypt. Keys whose names begin with "key-" or "passphrase-" are previous ones, and are used for reading only. Keep a copy: without it the snapshot cannot be restored.',
      ),
    },
  ),
} as const;
export const EncryptionSchema = storedAs.encryption;

/** One Pod reads the one location and writes the other, and a Pod has one ServiceAccount. */
const serviceAccountIn = (location: string): string =>
  ['s3', 'gcs', 'azure'].reduceRight((rest, store) => {
    const name = `${location}.${store}.serviceAccountName`;
    return `(has(${location}.${store}) && has(${name}) ? ${name} : ${rest})`;
  }, "''");
const [FIRST, SECOND] = [serviceAccountIn('self.destination'), serviceAccountIn('self.copyTo.destination')];
export const copyRule = {
  rule: `!has(self.copyTo) || ${FIRST} == '' || ${SECOND} == '' || ${FIRST} == ${SECOND}`,
  message:
    'destination and copyTo.destination have different serviceAccountNames, and one Pod uses both: use the same, or a Secret with credentials for one of them',
};
export const COPY_DESCRIPTION =
  'A second location: each snapshot that is stored is copied there from the first, as it is stored, and compared by its SHA-256. A copy that fails is tried again, and does not fail the snapshot.';

/** Of what takes a snapshot. */
export const snapshotResources = () =>
  agentResources(
    'CPU and memory of the agent that takes the snapshot. Absent: requests of 50m and 64Mi, and a memory limit of 256Mi, for a database above 72Gi more.',
  );

export type SnapshotLocation = Accepted<typeof SnapshotLocationSchema>;
