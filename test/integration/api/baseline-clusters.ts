/** EtcdClusters as the Go operator has them: ordinary ones, and ones that our rules would refuse. */
import { etcdClusters } from '../../../src/api/names.ts';
import type { Resource } from '../../../src/kube/object.ts';
import type { Written } from '../../support/servers/api-server.ts';
import { ref } from './row.ts';

export interface BaselineObject {
  readonly what: string;
  readonly resource: Resource<Written>;
  readonly name: string;
  readonly spec: object;
  readonly status?: object;
  /** An edit of another spec field; where there is none, only the metadata is edited. */
  readonly edit?: object;
  /** Edits next to the field that one of our rules would refuse, each on its own. */
  readonly siblings?: readonly object[];
  /** Edits that make it worse, and the message for each. */
  readonly worse?: readonly (readonly [edit: object, refused: string])[];
}

export const AT = '2026-01-01T00:00:00Z';
export const condition = (type: string, status: string, reason: string) => ({
  type,
  status,
  reason,
  message: 'm',
  lastTransitionTime: AT,
  observedGeneration: 1,
});
const conditions = [
  condition('Available', 'True', 'QuorumHealthy'),
  condition('Progressing', 'False', 'Reconciled'),
  condition('Degraded', 'False', 'QuorumHealthy'),
];

/** Every field of a Pod's affinity and spread that Kubernetes has. */
const selector = {
  matchLabels: { a: 'b' },
  matchExpressions: [
    { key: 'c', operator: 'In', values: ['d'] },
    { key: 'e', operator: 'Exists' },
  ],
};
const podTerm = {
  labelSelector: selector,
  matchLabelKeys: ['f'],
  mismatchLabelKeys: ['g'],
  namespaceSelector: selector,
  namespaces: ['h'],
  topologyKey: 'zone',
};
const podTerms = {
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: podTerm }],
  requiredDuringSchedulingIgnoredDuringExecution: [podTerm],
};
const nodeTerm = {
  matchExpressions: [{ key: 'n', operator: 'Gt', values: ['5'] }],
  matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node'] }],
};
export const template = {
  resources: { requests: { cpu: '500m', memory: '1Gi' }, limits: { memory: '2Gi' } },
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: nodeTerm }],
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [nodeTerm] },
    },
    podAffinity: podTerms,
    podAntiAffinity: podTerms,
  },
  topologySpreadConstraints: [
    {
      labelSelector: selector,
      matchLabelKeys: ['f'],
      maxSkew: 1,
      minDomains: 2,
      nodeAffinityPolicy: 'Honor',
      nodeTaintsPolicy: 'Ignore',
      topologyKey: 'zone',
      whenUnsatisfiable: 'DoNotSchedule',
    },
  ],
  additionalMetadata: { labels: { team: 'a' }, annotations: { note: 'b' } },
  options: {
    quotaBackendBytes: 2147483648,
    autoCompactionMode: 'periodic',
    autoCompactionRetention: '5m',
    snapshotCount: 5,
  },
  imagePullSecrets: [ref('pull')],
};
export const storage = { size: '4Gi', medium: '', storageClassName: 'fast' };
export const s3 = {
  endpoint: 'https://s3',
  bucket: 'b',
  key: 'k',
  region: 'r',
  forcePathStyle: true,
  credentialsSecretRef: ref('c'),
};
const tls = { client: { serverSecretRef: ref('s'), operatorClientSecretRef: ref('o') }, peer: { secretRef: ref('p') } };

const cluster = (what: string, name: string, spec: object, more: Partial<BaselineObject> = {}): BaselineObject => ({
  what,
  resource: etcdClusters,
  name,
  spec: { version: '3.5.20', ...spec },
  edit: { progressDeadlineSeconds: 900 },
  ...more,
});
export const labels = (entries: object) => ({ additionalMetadata: { labels: entries } });
const GI = 1024 ** 3;
const minutes = { autoCompactionMode: 'revision', autoCompactionRetention: '5m' };
const ages = { autoCompactionRetention: '9'.repeat(18) };
const odd = {
  resources: {
    claims: [{ name: 'x', request: 'y' }],
    requests: { disk: '5', memory: '2Gi', 'ephemeral-storage': -1 },
    limits: { memory: '1Gi' },
  },
};
const resources = (requests: object, limits: object) => ({
  resources: {
    claims: odd.resources.claims,
    requests: { ...odd.resources.requests, ...requests },
    limits: { ...odd.resources.limits, ...limits },
  },
});
const bigMap = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`key-${i}`, 'v']));

export const baselineClusters: readonly BaselineObject[] = [
  cluster('with next to nothing', 'least', {}),
  cluster(
    'with everything',
    'most',
    {
      replicas: 5,
      storage,
      tls,
      auth: { enabled: true, rootCredentialsSecretRef: ref('root') },
      bootstrap: { restore: { source: { s3 } } },
      ...template,
    },
    {
      status: {
        readyMembers: 5,
        selector: 'etcd-operator.cozystack.io/cluster=most',
        brokenMembers: 0,
        clusterID: 'cafe000000000001',
        clusterToken: 'ns-most-uid',
        authEnabled: true,
        observed: { replicas: 5, version: '3.5.20', storage, ...template },
        progressDeadline: AT,
        conditions,
      },
    },
  ),
  cluster('with cert-manager', 'issued', {
    tls: {
      client: { certManager: { serverIssuerRef: { name: 'ca' } } },
      peer: { certManager: { issuerRef: { name: 'ca', kind: 'ClusterIssuer' } } },
    },
  }),
  cluster('in memory', 'memory', { storage: { size: '256Mi', medium: 'Memory' } }),
  cluster('that is paused', 'paused', { replicas: 0 }),

  cluster('with a name that is too long', 'a'.repeat(60), {}),
  cluster('with a dot in its name', 'a.b', {}),
  cluster(
    'with a volume of no size',
    'empty',
    { storage: { size: '0' } },
    { siblings: [{ options: { quotaBackendBytes: 0 } }, { storage: { size: '1Gi', medium: '' } }] },
  ),
  cluster(
    'with a volume beyond all bounds',
    'boundless',
    { storage: { size: '1e1000000', medium: '' } },
    { siblings: [{ options: { snapshotCount: 9 } }] },
  ),
  cluster('with TLS that encrypts nothing', 'plain', { tls: {} }),
  cluster('with references to nothing', 'nothing', { tls: { peer: { secretRef: {} } }, imagePullSecrets: [{}] }),
  cluster(
    'with revisions measured in minutes',
    'minutes',
    { options: minutes },
    {
      siblings: [{ options: { ...minutes, snapshotCount: 9 } }, { options: { ...minutes, quotaBackendBytes: 1000 } }],
      worse: [[{ options: { ...minutes, autoCompactionRetention: '1h' } }, 'it must be a number of revisions']],
    },
  ),
  ...['1Gi', '1.5Gi'].map((size) =>
    cluster(
      `with a quota above its volume of ${size}`,
      `greedy-${size.length}`,
      { storage: { size, medium: '' }, options: { quotaBackendBytes: 8 * GI } },
      {
        siblings: [
          { options: { quotaBackendBytes: 8 * GI, snapshotCount: 9 } },
          { storage: { size: '4Gi', medium: '' } },
          { options: { quotaBackendBytes: 4 * GI } },
          { options: { quotaBackendBytes: 9 * GI } },
          { options: {} },
        ],
      },
    ),
  ),
  cluster('with labels that cannot be', 'labels', labels({ 'my team': 'a b' }), {
    siblings: [{ additionalMetadata: { labels: { 'my team': 'a b' }, annotations: { note: 'c' } } }],
  }),
  cluster('with very many labels', 'many', labels(bigMap), {
    siblings: [{ additionalMetadata: { labels: bigMap, annotations: { note: 'c' } } }],
  }),
  cluster(
    'with a class that cannot be',
    'class',
    { storage: { storageClassName: 'Fast_SSD' } },
    { siblings: [{ storage: { size: '2Gi', medium: '', storageClassName: 'Fast_SSD' } }] },
  ),
  cluster(
    'with more hours of history than etcd can count',
    'hours',
    { options: ages },
    {
      siblings: [{ options: { ...ages, snapshotCount: 9 } }, { options: { ...ages, autoCompactionRetention: '1h' } }],
      worse: [[{ options: { ...ages, autoCompactionRetention: '9999999' } }, 'the maximum of etcd is 2562047']],
    },
  ),
  cluster('with claims and odd resources', 'claims', odd, {
    siblings: [
      resources({}, { cpu: '1' }),
      resources({ cpu: '1' }, {}),
      resources({ cpu: '1' }, { cpu: '2' }),
      { resources: { ...odd.resources, claims: [] } },
      { resources: { ...odd.resources, limits: { memory: '2Gi' } } },
    ],
    worse: [
      [resources({ memory: '3Gi' }, {}), 'resources.requests asks for more than resources.limits allows'],
      [resources({ cpu: '2' }, { cpu: '1' }), 'resources.requests asks for more than resources.limits allows'],
      [resources({ tape: '1' }, {}), 'resources.requests has a name that is not a resource'],
      [resources({ cpu: '-2' }, {}), 'resources.requests has a value that is negative'],
    ],
  }),
  cluster(
    'with huge pages and nothing else',
    'huge',
    { resources: { limits: { 'hugepages-2Mi': '4Mi' } } },
    {
      siblings: [{ resources: { limits: { 'hugepages-2Mi': '8Mi' } } }],
      worse: [
        [{ resources: { limits: { 'hugepages-2Mi': '0.1Ki' } } }, 'must be integers'],
        [{ resources: { requests: { 'hugepages-2Mi': '2Mi' }, limits: { 'hugepages-2Mi': '4Mi' } } }, 'must equal'],
      ],
    },
  ),
  cluster('with an affinity that cannot be', 'affinity', {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: '', labelSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
        ],
      },
    },
    topologySpreadConstraints: [1, 2].map((maxSkew) => ({
      maxSkew,
      topologyKey: 'a',
      whenUnsatisfiable: 'ScheduleAnyway',
    })),
  }),
  cluster('with a key that escapes', 'escapes', {
    bootstrap: { restore: { source: { s3: { ...s3, key: '../../x' } } } },
  }),
  cluster('with a version of no etcd', 'version', { version: '3.5.99999999999999999999999999999999999999' }),
];
