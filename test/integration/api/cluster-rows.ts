/** EtcdCluster without the fields of its Pods. Each spec is added to `version: 3.6.16`. */
import { type EditRow, type Row, ref } from './row.ts';
import { peer, server } from './tls-rows.ts';

const s3 = { endpoint: 'https://s3', bucket: 'b', key: 'k', credentialsSecretRef: ref('c') };
const restore = (source: object) => ({ bootstrap: { restore: { source } } });
const auth = { auth: { enabled: true, rootCredentialsSecretRef: ref('root') } };

export const names: readonly (readonly [what: string, name: string, refused?: string])[] = [
  ['a short name', 'a'],
  ['a name of 56 characters', 'a'.repeat(56)],
  ['a name of 57 characters', 'a'.repeat(57), 'at most 56 characters'],
  ['a name of 64 characters', 'a'.repeat(64), 'at most 56 characters'],
  ['a name of 253 characters', 'a'.repeat(253), 'at most 56 characters'],
  ['digits and dashes', 'a-1-2'],
  ['a digit first', '1a', 'must start with a letter'],
  ['a dot', 'a.b', 'the name a.b must start with a letter, hold only a-z, 0-9 and -'],
];

export const specs: readonly Row[] = [
  ['next to nothing', {}],
  ['no members: paused', { replicas: 0 }],
  ['one member', { replicas: 1 }],
  ['an even number', { replicas: 4 }],
  ['as many members as etcd can list', { replicas: 99 }],
  ['more members than etcd can list', { replicas: 100 }, 'spec.replicas'],
  ['fewer than none', { replicas: -1 }, 'spec.replicas'],
  ['a version with a v', { version: 'v3.6.16' }, 'spec.version'],
  ['a version without a patch', { version: '3.6' }, 'spec.version'],
  ['a version that is a word', { version: 'latest' }, 'spec.version'],
  ['an old version', { version: '3.4.0' }],
  ['a version longer than any', { version: `3.6.${'1'.repeat(40)}` }, 'spec.version'],
  ['a size', { storage: { size: '10Gi' } }],
  ['a size as a number', { storage: { size: 1073741824 } }],
  ['a fraction of a size', { storage: { size: '1.5Gi' } }],
  ['a size of nothing', { storage: { size: '0' } }, 'storage.size is 0: it must be greater than zero, such as 1Gi'],
  ['a size below nothing', { storage: { size: '-1Gi' } }, 'storage.size is -1Gi: it must be greater than zero'],
  ['a size that is none', { storage: { size: 'big' } }, 'spec.storage.size'],
  ['a size with an exponent', { storage: { size: '1e9' } }],
  ['a size with zeros before its exponent', { storage: { size: '1.5e+0009' } }],
  ['a size with an exponent beyond any volume', { storage: { size: '1e999' } }],
  ['a size with an exponent that takes long to read', { storage: { size: '1e1000' } }, 'spec.storage.size'],
  ['a size of more digits than any', { storage: { size: '1'.repeat(65) } }, 'spec.storage.size'],
  ['no size for a memory volume', { storage: { size: 0, medium: 'Memory' } }, 'storage.size is 0'],
  ['memory', { storage: { medium: 'Memory', size: '256Mi' } }],
  ['another medium', { storage: { medium: 'Disk' } }, 'spec.storage.medium'],
  ['a storage class', { storage: { storageClassName: 'fast.ssd' } }],
  ['no dynamic provisioning', { storage: { storageClassName: '' } }],
  [
    'a storage class that cannot be one',
    { storage: { storageClassName: 'Fast_SSD' } },
    'storage.storageClassName Fast_SSD is not a valid name of a StorageClass',
  ],
  [
    'a paused cluster in memory',
    { replicas: 0, storage: { medium: 'Memory' } },
    'replicas 0 would lose all data of a cluster with storage.medium Memory',
  ],
  ['volumes that are deleted with the cluster', { deletionPolicy: 'Delete' }],
  ['volumes that are retained', { deletionPolicy: 'Retain' }],
  ['volumes that do something else', { deletionPolicy: 'Orphan' }, 'spec.deletionPolicy'],
  ['a deadline', { progressDeadlineSeconds: 1 }],
  ['no time at all', { progressDeadlineSeconds: 0 }, 'spec.progressDeadlineSeconds'],
  ['an unknown field', { podTemplate: {} }, 'unknown field "spec.podTemplate"'],
  ['no PodDisruptionBudget', { podDisruptionBudget: { enabled: false } }],
  ['a remedy for NOSPACE', { maintenance: { autoRemedy: { enabled: true, keepRevisions: 0 } } }],
  ['a remedy that is turned off', { maintenance: { autoRemedy: {} } }],
  [
    'a remedy that keeps fewer revisions than none',
    { maintenance: { autoRemedy: { keepRevisions: -1 } } },
    'spec.maintenance.autoRemedy.keepRevisions',
  ],
  ['no quarantine of volumes', { volumeQuarantine: { enabled: false } }],
  ['a suspended cluster', { suspend: true }],
  ['a suspension that is neither true nor false', { suspend: 'yes' }, 'spec.suspend'],

  [
    'updates with everything',
    {
      updateStrategy: {
        type: 'RollingUpdate',
        minReadySeconds: 30,
        maintenanceWindows: [{ schedule: '0 2 * * 6', duration: '1h30m', timeZone: 'Europe/Berlin' }],
      },
    },
  ],
  ['updates as Pods are deleted', { updateStrategy: { type: 'OnDelete' } }],
  ['a window in UTC', { updateStrategy: { maintenanceWindows: [{ schedule: '0 2 * * *', duration: '2h' }] } }],
  [
    'a window of no unit',
    { updateStrategy: { maintenanceWindows: [{ schedule: '0 2 * * *', duration: '2' }] } },
    'spec.updateStrategy.maintenanceWindows[0].duration',
  ],

  ['NetworkPolicies for members and the operator only', { networkPolicy: {} }],
  ...(['clients', 'monitoring'] as const).flatMap((who): readonly Row[] => {
    const from = (...peers: readonly object[]) => ({ networkPolicy: { [who]: peers } });
    const labels = { matchLabels: { a: 'b' } };
    const ipBlock = { cidr: '192.0.2.0/24', except: ['192.0.2.128/25'] };
    const refused = `networkPolicy.${who}[0]: Invalid value: set podSelector, namespaceSelector or both; or ipBlock alone`;
    return [
      [
        `${who} of every kind`,
        from(
          { podSelector: labels },
          { namespaceSelector: labels },
          { podSelector: {}, namespaceSelector: {} },
          { ipBlock },
          { ipBlock: { cidr: '2001:db8::/32' } },
        ),
      ],
      [`${who} from nowhere`, from({}), refused],
      [`${who} by Pod and address`, from({ podSelector: labels, ipBlock }), refused],
      [`${who} by namespace and address`, from({ namespaceSelector: labels, ipBlock }), refused],
      ...['999.0.2.0/24', '1.2.3.4.5.6/8', '192.0.2.0/33', '::/129', '.:/1'].map(
        (network): Row => [
          `${who} at ${network}, which is no network`,
          from({ ipBlock: { cidr: network } }),
          `networkPolicy.${who}[0].ipBlock.cidr`,
        ],
      ),
      [
        `${who} at an address without a length`,
        from({ ipBlock: { cidr: '192.0.2.1' } }),
        `networkPolicy.${who}[0].ipBlock.cidr`,
      ],
    ];
  }),

  ['authentication off by an empty object', { auth: {} }],
  ['authentication off', { auth: { enabled: false } }],
  ['authentication', { ...auth, tls: server }],
  ['authentication in the clear', auth, 'auth.enabled needs tls.client: passwords must not be sent in plaintext'],
  ['authentication with TLS for peers only', { ...auth, tls: peer }, 'auth.enabled needs tls.client'],
  [
    'authentication without a password',
    { auth: { enabled: true }, tls: server },
    'auth.enabled needs auth.rootCredentialsSecretRef',
  ],
  [
    'authentication with a Secret without a name',
    { auth: { enabled: true, rootCredentialsSecretRef: {} }, tls: server },
    'auth.rootCredentialsSecretRef.name is empty',
  ],

  ['a snapshot from S3', restore({ s3 })],
  ['a snapshot from a volume', restore({ pvc: { claimName: 'c', subPath: 'a/b.db' } })],
  ['an empty bootstrap', { bootstrap: {} }],
  [
    'a snapshot from nowhere',
    restore({}),
    'set exactly one of s3, gcs, azure, pvc, snapshotRef and latest.scheduleRef',
  ],
  ['a snapshot from two places', restore({ s3, pvc: { claimName: 'c', subPath: 'x' } }), 'set exactly one of s3'],
  ['an object without a key', restore({ s3: { ...s3, key: '' } }), 'bootstrap.restore.source.s3.key is empty'],
  ['a volume without a file', restore({ pvc: { claimName: 'c' } }), 'bootstrap.restore.source.pvc.subPath is empty'],
  [
    'a snapshot into memory',
    { ...restore({ s3 }), storage: { medium: 'Memory' } },
    'bootstrap.restore cannot be used with storage.medium Memory',
  ],

  ['a quota below the volume', { storage: { size: '1Gi' }, options: { quotaBackendBytes: 1073741824 } }],
  ['a quota below a volume of a fraction', { storage: { size: '1.5Gi' }, options: { quotaBackendBytes: 1610612736 } }],
  ['a quota above a volume of a fraction', { storage: { size: '1.5Gi' }, options: { quotaBackendBytes: 8589934592 } }],
  [
    'a quota above a volume given as a number',
    { storage: { size: 1073741824 }, options: { quotaBackendBytes: 1073741825 } },
  ],
  ['a quota of exactly the volume', { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934592 } }],
  [
    'a quota of one byte more than the volume',
    { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934593 } },
  ],
  [
    'a volume of one byte less than the quota',
    { storage: { size: 8589934591 }, options: { quotaBackendBytes: 8589934592 } },
  ],
  [
    'a volume of a thousandth of a byte less than the largest quota',
    { storage: { size: '9007199254740990999m' }, options: { quotaBackendBytes: Number.MAX_SAFE_INTEGER } },
  ],
  ['the largest quota', { storage: { size: '8Ei' }, options: { quotaBackendBytes: Number.MAX_SAFE_INTEGER } }],
  [
    'a quota that not every tool can read',
    { storage: { size: '8Ei' }, options: { quotaBackendBytes: Number.MAX_SAFE_INTEGER + 1 } },
    'spec.options.quotaBackendBytes',
  ],
  ['the quota of etcd', { options: { quotaBackendBytes: 0 } }],
  ['a quota below nothing', { options: { quotaBackendBytes: -1 } }, 'spec.options.quotaBackendBytes'],
  ['a quota above the volume', { storage: { size: '1Gi' }, options: { quotaBackendBytes: 1073741825 } }],
  ['a quota above the default volume', { options: { quotaBackendBytes: 8589934592 } }],
  [
    'a quota above the memory',
    { storage: { size: '256Mi', medium: 'Memory' }, options: { quotaBackendBytes: 8589934592 } },
  ],
];

export const edits: readonly EditRow[] = [
  ['more members', { replicas: 1 }, { replicas: 3 }],
  ['fewer members', { replicas: 5 }, { replicas: 3 }],
  ['pausing', { replicas: 3 }, { replicas: 0 }],
  [
    'parking in memory',
    { replicas: 3, storage: { medium: 'Memory' } },
    { replicas: 0, storage: { medium: 'Memory' } },
    'replicas 0 would lose all data',
  ],
  ['a larger volume', { storage: { size: '1Gi' } }, { storage: { size: '2Gi' } }],
  ['the same size in another unit', { storage: { size: '1Gi' } }, { storage: { size: '1024Mi' } }],
  [
    'a smaller volume',
    { storage: { size: '2Gi' } },
    { storage: { size: '1Gi' } },
    'storage.size cannot be reduced from 2Gi to 1Gi',
  ],
  ['another medium', {}, { storage: { medium: 'Memory' } }, 'storage.medium cannot change'],
  ['more memory', { storage: { size: '1Gi', medium: 'Memory' } }, { storage: { size: '2Gi', medium: 'Memory' } }],
  [
    'a larger volume of the same class',
    { storage: { size: '1Gi', storageClassName: 'a' } },
    { storage: { size: '2Gi', storageClassName: 'a' } },
  ],
  [
    'a class is added',
    {},
    { storage: { storageClassName: 'a' } },
    'storage.storageClassName cannot be added or removed',
  ],
  [
    'a class is removed',
    { storage: { storageClassName: 'a' } },
    {},
    'storage.storageClassName cannot be added or removed',
  ],
  [
    'another class',
    { storage: { storageClassName: 'a' } },
    { storage: { storageClassName: 'b' } },
    'storage.storageClassName cannot change from a to b',
  ],
  ['TLS is added', {}, { tls: server }, 'tls cannot be added or removed after creation'],
  ['TLS is removed', { tls: server }, {}, 'tls cannot be added or removed after creation'],
  ['TLS is changed', { tls: server }, { tls: { ...server, ...peer } }, 'tls cannot change after creation'],
  ['something else, with TLS', { tls: server }, { tls: server, replicas: 5 }],
  [
    'authentication is added',
    { tls: server },
    { ...auth, tls: server },
    'auth cannot be added or removed after creation',
  ],
  [
    'authentication is removed',
    { ...auth, tls: server },
    { tls: server },
    'auth cannot be added or removed after creation',
  ],
  [
    'authentication is turned off',
    { ...auth, tls: server },
    { auth: { enabled: false }, tls: server },
    'auth cannot change after creation',
  ],
  ['something else, with authentication', { ...auth, tls: server }, { ...auth, tls: server, replicas: 5 }],
  ['a restore is added', {}, restore({ s3 }), 'bootstrap cannot be added or removed after creation'],
  ['a restore is removed', restore({ s3 }), {}, 'bootstrap cannot be added or removed after creation'],
  ['another snapshot', restore({ s3 }), restore({ s3: { ...s3, key: 'l' } }), 'bootstrap cannot change after creation'],
  ['something else, with a snapshot', restore({ s3 }), { ...restore({ s3 }), replicas: 5 }],

  [
    'a larger volume and its quota',
    { storage: { size: '1Gi' } },
    { storage: { size: '4Gi' }, options: { quotaBackendBytes: 3221225472 } },
  ],
  [
    'a quota up to the volume',
    { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934591 } },
    { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934592 } },
  ],
  [
    'a quota of one byte more than the volume',
    { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934592 } },
    { storage: { size: '8Gi' }, options: { quotaBackendBytes: 8589934593 } },
  ],
  [
    'a quota above the volume',
    { storage: { size: '1Gi' } },
    { storage: { size: '1Gi' }, options: { quotaBackendBytes: 2147483648 } },
  ],
  [
    'a quota above a volume of a fraction',
    { storage: { size: '1.5Gi' } },
    { storage: { size: '1.5Gi' }, options: { quotaBackendBytes: 1610612737 } },
  ],
];
