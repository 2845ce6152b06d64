/** For each field that can be ignored, by its name in messages, a spec in which it is. */
import type { EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';

const version = '3.6.16';
const memory = { size: '1Gi', medium: 'Memory' } as const;
const s3 = {
  endpoint: 'https://s3.example.com',
  bucket: 'b',
  key: 'k',
  serverSideEncryption: { algorithm: 'AES256' },
} as const;

export const IGNORED_SPECS: readonly (readonly [field: string, spec: EtcdClusterSpec])[] = [
  ['storage.storageClassName', { version, storage: { ...memory, storageClassName: 'fast' } }],
  ['deletionPolicy', { version, storage: memory, deletionPolicy: 'Retain' }],
  ['volumeQuarantine', { version, storage: memory, volumeQuarantine: { enabled: false } }],
  ['auth.rootCredentialsSecretRef', { version, auth: { rootCredentialsSecretRef: { name: 'root' } } }],
  ['auth.rootCredentialsSecretRef', { version, auth: { enabled: false, rootCredentialsSecretRef: { name: 'root' } } }],
  ['maintenance.autoRemedy.keepRevisions', { version, maintenance: { autoRemedy: { keepRevisions: 5 } } }],
  ['bootstrap', { version, bootstrap: {} }],
  ['bootstrap.restore.source.s3.serverSideEncryption', { version, bootstrap: { restore: { source: { s3 } } } }],
  ['options.snapshotCount', { version: '3.8.0', options: { snapshotCount: 10_000 } }],
  ['options.corruptionCheck.compactHash', { version: '3.5.4', options: { corruptionCheck: { compactHash: true } } }],
  [
    'a key of additionalMetadata',
    { version, additionalMetadata: { labels: { 'etcd-operator.cozystack.io/cluster': 'x' } } },
  ],
  [
    'a key of additionalMetadata',
    { version, additionalMetadata: { annotations: { 'volume.kubernetes.io/selected-node': 'n' } } },
  ],
  [
    'a key of additionalMetadata',
    { version, additionalMetadata: { annotations: { 'kubernetes.io/config.source': 'file' } } },
  ],
];

/** Specs next to them in which every field has its effect. */
export const APPLIED_SPECS: readonly (readonly [what: string, spec: EtcdClusterSpec])[] = [
  [
    'a class of volumes',
    { version, deletionPolicy: 'Retain', storage: { size: '1Gi', medium: '', storageClassName: 'fast' } },
  ],
  ['a remedy that keeps some history', { version, maintenance: { autoRemedy: { enabled: true, keepRevisions: 5 } } }],
  ['volumes without quarantine', { version, volumeQuarantine: { enabled: false } }],
  ['memory that is deleted', { version, storage: memory, deletionPolicy: 'Delete' }],
  [
    'auth',
    {
      version,
      tls: { client: { managed: {} } },
      auth: { enabled: true, rootCredentialsSecretRef: { name: 'root' } },
    },
  ],
  [
    'flags of its version',
    { version: '3.7.4', options: { snapshotCount: 10_000, corruptionCheck: { compactHash: true } } },
  ],
  ['the first version with the check', { version: '3.5.35', options: { corruptionCheck: { compactHash: true } } }],
  [
    'own labels',
    { version, additionalMetadata: { labels: { team: 'a' }, annotations: { 'example.com/volume': 'b' } } },
  ],
];
