/** The other kinds. */
import { restored } from './backup-rows.ts';
import { template } from './baseline-clusters.ts';
import { type EditRow, type Row, ref } from './row.ts';

const s3 = (fields: object = {}) => ({
  s3: { endpoint: 'https://s3', bucket: 'b', credentialsSecretRef: ref('c'), ...fields },
});
const pvc = (fields: object = {}) => ({ pvc: { claimName: 'c', ...fields } });
const clusterRef = ref('db');

export const snapshots: readonly Row[] = [
  ['into a bucket', { clusterRef, destination: s3({ key: 'a/b/', region: 'eu', forcePathStyle: true }) }],
  ['into the root of a bucket', { clusterRef, destination: s3({ key: '' }) }],
  ['into a volume', { clusterRef, destination: pvc({ subPath: 'daily' }) }],
  ['of no cluster', { clusterRef: {}, destination: s3() }, 'clusterRef.name is empty: set it'],
  ['of a cluster without a name', { clusterRef: ref(''), destination: s3() }, 'clusterRef.name is empty'],
  ['to nowhere', { clusterRef, destination: {} }, 'set exactly one of s3'],
  ['to two places', { clusterRef, destination: { ...s3(), ...pvc() } }, 'set exactly one of s3'],
  ['without a bucket', { clusterRef, destination: s3({ bucket: '' }) }, 's3.bucket'],
  ['without an endpoint', { clusterRef, destination: s3({ endpoint: '' }) }, 's3.endpoint'],
  [
    'without credentials',
    { clusterRef, destination: s3({ credentialsSecretRef: {} }) },
    's3.credentialsSecretRef.name is empty',
  ],
  ['without a PVC', { clusterRef, destination: pvc({ claimName: '' }) }, 'pvc.claimName'],
  ...[
    '..',
    '../x',
    'a/../b',
    'a/..',
    './a',
    'a/./b',
    '/a',
    '/',
    'a//b',
    '%2e%2e/x',
    'a/%2E./b',
    '%2Fa',
    '%252e%252e/x',
  ].flatMap((path): readonly Row[] => [
    [`a key of ${path}`, { clusterRef, destination: s3({ key: path }) }, `s3.key ${path} must be a relative path`],
    [
      `a path of ${path}`,
      { clusterRef, destination: pvc({ subPath: path }) },
      `pvc.subPath ${path} must be a relative path`,
    ],
  ]),
  ...['a\\b', 'a\nb', 'a\u0085b', 'a%5cb', 'a%0Ab', 'a%255Cb'].flatMap((path): readonly Row[] => [
    [
      `a key of ${JSON.stringify(path)}`,
      { clusterRef, destination: s3({ key: path }) },
      's3.key has a control character or a backslash',
    ],
    [
      `a path of ${JSON.stringify(path)}`,
      { clusterRef, destination: pvc({ subPath: path }) },
      'pvc.subPath has a control character or a backslash',
    ],
  ]),
  ...['a b', 'ä/日本', 'a:b', '$(HOME)', 'a;b', 'a%2e%2e', '100%', 'a%20b', 'a/b/'].flatMap((path): readonly Row[] => [
    [`a key of ${path}`, { clusterRef, destination: s3({ key: path }) }],
    [`a path of ${path}`, { clusterRef, destination: pvc({ subPath: path }) }],
  ]),
  ['a key with dots that are no steps', { clusterRef, destination: s3({ key: 'a..b/...c/date=2026-01-01' }) }],
];

export const snapshotEdits: readonly EditRow[] = [
  [
    'another destination',
    { clusterRef, destination: s3() },
    { clusterRef, destination: s3({ key: 'x' }) },
    'a snapshot is taken once and its spec cannot change',
  ],
  [
    'another cluster',
    { clusterRef, destination: s3() },
    { clusterRef: ref('other'), destination: s3() },
    'a snapshot is taken once',
  ],
  ['nothing', { clusterRef, destination: s3() }, { clusterRef, destination: s3() }],
];

const rule = (value: object) => ({ clusterRef, rule: value });

export const defrags: readonly Row[] = [
  ['by the default rule', { clusterRef }],
  ['by an empty rule', rule({})],
  ['of all', rule({ all: true })],
  ['by free space', rule({ freeSpaceAbove: '500Mi' })],
  ['by use of the quota', rule({ quotaUsageAbove: '80%', minReclaim: '64Mi', freeSpaceAbove: '1Gi' })],
  ['of no cluster', { clusterRef: {} }, 'clusterRef.name is empty'],
  ['of all, and not of all', rule({ all: true, freeSpaceAbove: '1Mi' }), 'rule.all selects every member'],
  ['of not all', rule({ all: false, freeSpaceAbove: '1Mi' })],
  ['by no free space', rule({ freeSpaceAbove: 0 }), 'rule.freeSpaceAbove is 0: it must be greater than zero'],
  [
    'with nothing to gain',
    rule({ quotaUsageAbove: '80%', minReclaim: '-1' }),
    'rule.minReclaim is -1: it must be greater than zero',
  ],
  ['with a gain and no quota', rule({ minReclaim: '1Mi' }), 'rule.minReclaim only works together with quotaUsageAbove'],
  [
    'with a gain that never counts',
    rule({ quotaUsageAbove: '80%', minReclaim: '2Gi', freeSpaceAbove: '1Gi' }),
    'rule.minReclaim is larger than freeSpaceAbove',
  ],
  ['by use of more than the quota', rule({ quotaUsageAbove: '101%' }), 'rule.quotaUsageAbove'],
  ['by use of nothing', rule({ quotaUsageAbove: '0%' }), 'rule.quotaUsageAbove'],
  ['by use without a sign', rule({ quotaUsageAbove: '80' }), 'rule.quotaUsageAbove'],
  ['kept for an hour', { clusterRef, ttlSecondsAfterFinished: 3600 }],
  ['kept for less than nothing', { clusterRef, ttlSecondsAfterFinished: -1 }, 'ttlSecondsAfterFinished'],
];

export const defragEdits: readonly EditRow[] = [
  ['kept longer', { clusterRef }, { clusterRef, ttlSecondsAfterFinished: 60 }],
  [
    'another rule',
    { clusterRef },
    rule({ all: true }),
    'an EtcdDefrag runs once: only ttlSecondsAfterFinished can change',
  ],
  ['another cluster', { clusterRef }, { clusterRef: ref('other') }, 'an EtcdDefrag runs once'],
];

const policy = (fields: object = {}) => ({ clusterRef, schedule: '0 3 * * *', ...fields });

export const policies: readonly Row[] = [
  ['every night', policy()],
  [
    'with everything',
    policy({
      timeZone: 'Europe/Berlin',
      windowSeconds: 3600,
      suspend: true,
      concurrencyPolicy: 'Allow',
      startingDeadlineSeconds: 60,
      historyLimit: 3,
      rule: { quotaUsageAbove: '80%', minReclaim: '64Mi', freeSpaceAbove: '1Gi' },
      ttlSecondsAfterFinished: 60,
    }),
  ],
  ['of every member', policy({ rule: { all: true } })],
  ['of no cluster', policy({ clusterRef: {} }), 'clusterRef.name is empty'],
  ['never', policy({ schedule: '' }), 'spec.schedule'],
  ['with another policy', policy({ concurrencyPolicy: 'Replace' }), 'spec.concurrencyPolicy'],
  ['with less than no history', policy({ historyLimit: -1 }), 'spec.historyLimit'],
  ['with a deadline in the past', policy({ startingDeadlineSeconds: -1 }), 'spec.startingDeadlineSeconds'],
  ['with a rule that cannot be', policy({ rule: { all: true, minReclaim: '1Mi' } }), 'rule.all selects every member'],
  ['by no free space', policy({ rule: { freeSpaceAbove: 0 } }), 'rule.freeSpaceAbove is 0'],
  ['with nothing to gain', policy({ rule: { quotaUsageAbove: '80%', minReclaim: 0 } }), 'rule.minReclaim is 0'],
  ['with a gain and no quota', policy({ rule: { minReclaim: '1Mi' } }), 'rule.minReclaim only works together'],
  [
    'with a gain that never counts',
    policy({ rule: { quotaUsageAbove: '80%', minReclaim: '2Gi', freeSpaceAbove: '1Gi' } }),
    'rule.minReclaim is larger than freeSpaceAbove',
  ],
];

/** The same locations, as the source of a restore. */
const restore = (source: object) => ({ bootstrap: { restore: { source } } });
export const sources: readonly Row[] = [
  ['a key and a path', restore(s3({ key: 'a b/ä.db' }))],
  ['a key that escapes', restore(s3({ key: '../x' })), 's3.key ../x must be a relative path'],
  ['a key with a backslash', restore(s3({ key: 'a\\b' })), 's3.key has a control character or a backslash'],
  ['no credentials', restore(s3({ key: 'k', credentialsSecretRef: {} })), 's3.credentialsSecretRef.name is empty'],
  ['a path that escapes', restore(pvc({ subPath: '../x' })), 'pvc.subPath ../x must be a relative path'],
  ['a path with a backslash', restore(pvc({ subPath: 'a\\b' })), 'pvc.subPath has a control character or a backslash'],
];

export const policyEdits: readonly EditRow[] = [['another schedule', policy(), policy({ schedule: '0 4 * * *' })]];

/** The required fields of a member; everything else is a copy of what was validated in its cluster. */
const member = (fields: object = {}) => ({
  clusterName: 'db',
  version: '3.6.16',
  storage: { size: '1Gi', medium: '' },
  initialCluster: '',
  clusterToken: 't',
  ...fields,
});

export const members: readonly Row[] = [
  [
    'as the operator creates one',
    member({
      bootstrap: true,
      options: { snapshotCount: 1 },
      tls: { peerAutoTLS: true },
      dormant: true,
      deletionPolicy: 'Retain',
      maxLearners: 8,
    }),
  ],
  [
    'with everything',
    member({
      ...template,
      replicas: 1,
      options: { autoCompactionMode: 'revision', logLevel: 'info' },
      resources: { claims: [ref('x')] },
      spread: 'None',
      tolerations: [{ operator: 'Exists', effect: 'NoExecute' }],
      podSecurityContext: { fsGroupChangePolicy: 'Always' },
      restore: { source: s3() },
    }),
  ],
  ...restored.map(([what, restore]): Row => [what, member({ restore })]),
  [
    'with what an older rule accepted',
    member({ additionalMetadata: { labels: { 'a b': 'c' } }, storage: { size: '0', medium: '' } }),
  ],
  ['of no cluster', member({ clusterName: '' }), 'spec.clusterName'],
  ['of no version', member({ version: 'x' }), 'spec.version'],
  ['twice', member({ replicas: 2 }), 'spec.replicas'],
  ['without a token', { ...member(), clusterToken: undefined }, 'spec.clusterToken'],
];
