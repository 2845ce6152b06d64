/** Further locations of snapshots, how they are stored, and schedules. */
import { type EditRow, type Row, ref } from './row.ts';

const clusterRef = ref('db');
const s3 = (fields: object = {}) => ({ s3: { endpoint: 'https://s3', bucket: 'b', key: 'k', ...fields } });
const gcs = (fields: object = {}) => ({ gcs: { bucket: 'b', key: 'k', ...fields } });
const azure = (fields: object = {}) => ({ azure: { container: 'c', key: 'k', ...fields } });
const pvc = (fields: object = {}) => ({ pvc: { claimName: 'c', subPath: 'k', ...fields } });
const url = 'must be a URL such as https://storage.example.com';
const kms = { serverSideEncryption: { algorithm: 'aws:kms', kmsKeyId: 'alias/etcd' } };

const confined = (name: string, field: string, store: (fields: object) => object): readonly Row[] => [
  [`${name}: a path that escapes`, store({ [field]: 'a/../b' }), `${name}.${field} a/../b must be a relative path`],
  [`${name}: a backslash`, store({ [field]: 'a\\b' }), `${name}.${field} has a control character or a backslash`],
];
const known = (name: string, store: (fields: object) => object): readonly Row[] => [
  [`${name}: with credentials`, store({ credentialsSecretRef: ref('c') })],
  [
    `${name}: with credentials without a name`,
    store({ credentialsSecretRef: {} }),
    `${name}.credentialsSecretRef.name is empty`,
  ],
  [`${name}: as a ServiceAccount`, store({ serviceAccountName: 'backup' })],
];

/** For every location. */
const locations: readonly Row[] = [
  ['a bucket with the identity of the cloud', s3()],
  ['a bucket with its own CA', s3({ caSecretRef: ref('ca') })],
  ...(
    [
      ['s3', s3],
      ['gcs', gcs],
      ['azure', azure],
    ] as const
  ).flatMap(([name, store]): readonly Row[] => [
    [`${name}: with a CA without a name`, store({ caSecretRef: {} }), `${name}.caSecretRef.name is empty`],
    [`${name}: with no CA but its own`, store({ caSecretRef: ref('ca'), caMode: 'Replace' })],
    [`${name}: with no CA at all`, store({ caMode: 'Replace' }), `${name}.caMode Replace needs ${name}.caSecretRef`],
  ]),
  ['encrypted by the service', s3({ serverSideEncryption: { algorithm: 'AES256' } })],
  ['encrypted with a key of the service', s3(kms)],
  [
    'encrypted with a key that does not fit',
    s3({ serverSideEncryption: { algorithm: 'AES256', kmsKeyId: 'k' } }),
    's3.serverSideEncryption.kmsKeyId needs the algorithm aws:kms',
  ],
  ['with checksums', s3({ checksums: 'WhenSupported' })],
  ...['s3.example.com', 'ftp://s3', 'https://user@s3', 'https://s3?x', 'https://s3#x'].map(
    (endpoint): Row => [`the endpoint ${endpoint}`, s3({ endpoint }), `s3.endpoint ${url}`],
  ),
  ['an endpoint with a port', s3({ endpoint: 'http://minio.minio.svc:9000' })],
  ['a bucket of Google', gcs()],
  ['an emulator of it', gcs({ endpoint: 'http://gcs:4443' })],
  ['nothing of Google', gcs({ endpoint: 'gcs' }), `gcs.endpoint ${url}`],
  ['a container of Azure', azure({ account: 'acc' })],
  ['an emulator of it', azure({ endpoint: 'http://azurite:10000/acc' })],
  ['nothing of Azure', azure({ endpoint: 'azure' }), `azure.endpoint ${url}`],
  ['a volume', pvc()],
  ['two clouds', { ...gcs(), ...azure() }, 'set exactly one of s3'],
  ...known('s3', s3),
  ...known('gcs', gcs),
  ...known('azure', azure),
  ...confined('s3', 'key', s3),
  ...confined('gcs', 'key', gcs),
  ...confined('azure', 'key', azure),
  ...confined('pvc', 'subPath', pvc),
];
const located = (spec: (location: object) => object): readonly Row[] =>
  locations.map(([what, location, ...refused]) => [what, spec(location), ...refused]);

const sealed = { compression: 'Zstd', encryption: { keySecretRef: ref('key') } };
const unsealed = { encryption: { keySecretRef: {} } };

const amounts = { requests: { cpu: 1, memory: '1Gi' }, limits: { cpu: 2, memory: '4Gi' } };

/** One Pod reads the first location and writes the second. */
const [first, second] = [s3({ serviceAccountName: 'a' }), { destination: gcs({ serviceAccountName: 'b' }) }];
const twoAccounts = 'have different serviceAccountNames';

export const snapshots: readonly Row[] = [
  ...located((destination) => ({ clusterRef, destination })),
  ...located((destination) => ({ clusterRef, destination: s3(), copyTo: { destination } })),
  ['with a copy nowhere', { clusterRef, destination: s3(), copyTo: { destination: {} } }, 'set exactly one of s3'],
  ['with two ServiceAccounts', { clusterRef, destination: first, copyTo: second }, twoAccounts],
  ['with one ServiceAccount', { clusterRef, destination: s3(), copyTo: second }],
  [
    'with the same ServiceAccount twice',
    { clusterRef, destination: first, copyTo: { destination: gcs({ serviceAccountName: 'a' }) } },
  ],
  ['compressed and encrypted', { clusterRef, destination: s3(), ...sealed }],
  ['in a folder for each cluster', { clusterRef, destination: s3(), layout: 'ByCluster' }],
  ['with more memory', { clusterRef, destination: s3(), resources: amounts }],
  [
    'with memory that is no quantity',
    { clusterRef, destination: s3(), resources: { limits: { memory: 'much' } } },
    'resources.limits.memory',
  ],
  ['in a layout that does not exist', { clusterRef, destination: s3(), layout: 'ByDay' }, 'layout'],
  ['encrypted with no key', { clusterRef, destination: s3(), ...unsealed }, 'encryption.keySecretRef.name is empty'],
];

const checksum = `sha256:${'0'.repeat(64)}`;
const restore = (fields: object) => ({ bootstrap: { restore: { source: gcs(), ...fields } } });
export const sources: readonly Row[] = [
  ...located((source) => restore({ source })),
  ['no object of Google', restore({ source: gcs({ key: '' }) }), 'bootstrap.restore.source.gcs.key is empty'],
  ['no object of Azure', restore({ source: azure({ key: '' }) }), 'bootstrap.restore.source.azure.key is empty'],
  ['without raising revisions', restore({ bumpRevision: 0 })],
  ['one with a checksum', restore({ source: { ...gcs(), checksum: `sha256:${'0'.repeat(64)}` } })],
  ['one with half a checksum', restore({ source: { ...gcs(), checksum: 'sha256:abc' } }), 'source.checksum'],
  ...located((copy) => restore({ source: { ...gcs(), copy, checksum } })),
  ['a copy that may be another snapshot', restore({ source: { ...gcs(), copy: pvc() } }), 'copy needs checksum'],
  ['a copy nowhere', restore({ source: { ...gcs(), copy: {}, checksum } }), 'set exactly one of s3'],
  ['an EtcdSnapshot and a copy', restore({ source: { snapshotRef: ref('m'), copy: pvc() } }), 'copy needs checksum'],
  ['an EtcdSnapshot', restore({ source: { snapshotRef: ref('monday') } })],
  ['an EtcdSnapshot without a name', restore({ source: { snapshotRef: {} } }), 'source.snapshotRef.name is empty'],
  ['an EtcdSnapshot and a bucket', restore({ source: { ...gcs(), snapshotRef: ref('m') } }), 'set exactly one of s3'],
  [
    'an EtcdSnapshot and a checksum',
    restore({ source: { snapshotRef: ref('m'), checksum: `sha256:${'0'.repeat(64)}` } }),
    'checksum cannot be combined with snapshotRef',
  ],
  ['the newest of a schedule', restore({ source: { latest: { scheduleRef: ref('nightly') } } })],
  [
    'the newest of a schedule without a name',
    restore({ source: { latest: { scheduleRef: {} } } }),
    'latest.scheduleRef.name is empty',
  ],
  [
    'the newest of a schedule and of a cluster',
    restore({ source: { latest: { scheduleRef: ref('nightly'), cluster: 'db' } } }),
    'latest.cluster cannot be combined with latest.scheduleRef',
  ],
  ['the newest of a bucket', restore({ source: { ...s3({ key: '' }), latest: {} } })],
  ['the newest of a cluster', restore({ source: { ...pvc({ subPath: 'prod' }), latest: { cluster: 'ns/db' } } })],
  ['the newest of no cluster', restore({ source: { ...pvc(), latest: { cluster: 'a/b/c' } } }), 'latest.cluster'],
  ['the newest of nothing', restore({ source: { latest: {} } }), 'set exactly one of s3'],
  [
    'the newest and another',
    restore({ source: { snapshotRef: ref('m'), latest: {} } }),
    'latest cannot be combined with snapshotRef or checksum',
  ],
  ['with a new root password', restore({ resetRootPassword: true })],
  ['with more memory', restore({ resources: amounts })],
  [
    'with memory that is no quantity',
    restore({ resources: { limits: { memory: 'much' } } }),
    'resources.limits.memory',
  ],
  ['an encrypted one', restore({ encryption: { keySecretRef: ref('key') } })],
  ['one with no key', restore(unsealed), 'encryption.keySecretRef.name is empty'],
];

/** Members have copies: everything is accepted. */
export const restored: readonly (readonly [what: string, restore: object])[] = locations
  .filter(([, , refused]) => refused === undefined)
  .map(([what, source]) => [
    `that is restored from ${what}`,
    { source: { ...source, copy: source, checksum }, bumpRevision: 0, encryption: { keySecretRef: ref('key') } },
  ]);

const schedule = (fields: object = {}) => ({ clusterRef, schedule: '30 3 * * *', destination: s3(), ...fields });
const retention = (fields: object) => schedule({ retention: fields });

export const schedules: readonly Row[] = [
  ['every night', schedule()],
  [
    'with everything',
    schedule({
      timeZone: 'Europe/Berlin',
      suspend: true,
      startingDeadlineSeconds: 600,
      concurrencyPolicy: 'Replace',
      jitterSeconds: 300,
      successfulSnapshotsHistoryLimit: 0,
      failedSnapshotsHistoryLimit: 1,
      layout: 'ByCluster',
      compression: 'Zstd',
      encryption: { keySecretRef: ref('key') },
      retention: { keepLast: 3, maxAge: '720h', hourly: 24, daily: 7, weekly: 4, monthly: 12, yearly: 2 },
      recoveryPoint: '25h',
      immediate: true,
      resources: amounts,
      drill: { every: 7, storageSize: '2Gi', resources: amounts },
      scrub: 'Daily',
      copyTo: {
        destination: gcs(),
        retention: { keepLast: 3, maxAge: '720h', hourly: 24, daily: 7, weekly: 4, monthly: 12, yearly: 2 },
      },
    }),
  ],
  ...located((destination) => schedule({ destination })),
  ...located((destination) => schedule({ copyTo: { destination } })),
  ['with two ServiceAccounts', schedule({ destination: first, copyTo: second }), twoAccounts],
  [
    'with copies that nothing keeps',
    schedule({ copyTo: { destination: gcs(), retention: {} } }),
    'copyTo.retention keeps nothing',
  ],
  [
    'with copies that are kept for no time',
    schedule({ copyTo: { destination: gcs(), retention: { maxAge: '0h' } } }),
    'copyTo.retention.maxAge must be a duration above zero',
  ],
  ['of no cluster', schedule({ clusterRef: {} }), 'clusterRef.name is empty'],
  ['to nowhere', schedule({ destination: {} }), 'set exactly one of s3'],
  ['tried out each time', schedule({ drill: {} })],
  ['kept by number', retention({ keepLast: 1 })],
  ['kept by age', retention({ maxAge: '36h' })],
  ['kept by tiers', retention({ daily: 7 })],
  ['keeping nothing', retention({}), 'retention keeps nothing'],
  ['keeping none of anything', retention({ daily: 0, weekly: 0 }), 'retention keeps nothing'],
  ['kept for no time', retention({ maxAge: '0h' }), 'retention.maxAge must be a duration above zero'],
  ['kept for days', retention({ maxAge: '7d' }), 'retention.maxAge must be a duration above zero'],
  ['with nothing to lose', schedule({ recoveryPoint: '0s' }), 'recoveryPoint must be a duration above zero'],
  ['encrypted with no key', schedule({ encryption: { keySecretRef: {} } }), 'encryption.keySecretRef.name is empty'],
];

export const scheduleEdits: readonly EditRow[] = [
  ['another time', schedule(), schedule({ schedule: '@hourly' })],
  ['another place', schedule(), schedule({ destination: gcs() })],
  ['a second place', schedule(), schedule({ copyTo: { destination: gcs() } })],
];
