/**
 * The definitions of the Go operator of the same group and version, as far as they decide what was accepted: types, defaults,
 * bounds, patterns and rules. What it copies from Pods is open here, so that anything that could have been written is kept.
 */
import type { CustomResourceDefinition } from '../../../src/api/crd.ts';
import { GROUP, VERSION } from '../../../src/api/names.ts';

type Schema = Readonly<Record<string, unknown>>;
const text = (more: Schema = {}): Schema => ({ type: 'string', ...more });
const bool: Schema = { type: 'boolean' };
const int = (format: 'int32' | 'int64', more: Schema = {}): Schema => ({ type: 'integer', format, ...more });
const list = (items: Schema, more: Schema = {}): Schema => ({ type: 'array', items, ...more });
const object = (
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
  more: Schema = {},
): Schema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  ...more,
});
const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const map: Schema = { type: 'object', additionalProperties: text() };
const rules = (...pairs: readonly (readonly [string, string])[]): Schema => ({
  'x-kubernetes-validations': pairs.map(([rule, message]) => ({ rule, message })),
});
const ref = (more: Schema = {}): Schema =>
  object({ name: text({ default: '' }) }, [], { 'x-kubernetes-map-type': 'atomic', ...more });
const quantity = (more: Schema = {}): Schema => ({
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
  pattern: String.raw`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
  ...more,
});
const version = text({ pattern: String.raw`^\d+\.\d+\.\d+$` });

const storage = (more: Schema = {}): Schema =>
  object(
    {
      size: quantity({
        default: '1Gi',
        ...rules(['quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0', 'storage cannot shrink']),
      }),
      medium: text({ enum: ['', 'Memory'], default: '', ...rules(['self == oldSelf', 'medium is immutable']) }),
      storageClassName: text(),
    },
    [],
    more,
  );

const location = object(
  {
    s3: object(
      {
        endpoint: text({ minLength: 1 }),
        bucket: text({ minLength: 1 }),
        key: text(),
        region: text(),
        forcePathStyle: bool,
        credentialsSecretRef: ref(),
      },
      ['endpoint', 'bucket', 'credentialsSecretRef'],
    ),
    pvc: object({ claimName: text({ minLength: 1 }), subPath: text() }, ['claimName']),
  },
  [],
  rules(['has(self.s3) != has(self.pvc)', 'exactly one of destination.s3 and destination.pvc']),
);

const template = {
  resources: open,
  affinity: open,
  topologySpreadConstraints: list(open),
  additionalMetadata: object({ labels: map, annotations: map }),
  options: object({
    quotaBackendBytes: int('int64', { minimum: 0 }),
    autoCompactionMode: text({ enum: ['periodic', 'revision'] }),
    autoCompactionRetention: text({ pattern: String.raw`^([0-9]+|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$` }),
    snapshotCount: int('int64', { minimum: 1 }),
  }),
  imagePullSecrets: list(ref()),
};

const issuer = object(
  { name: text({ minLength: 1 }), kind: text({ enum: ['Issuer', 'ClusterIssuer'], default: 'Issuer' }) },
  ['name'],
);
const tls = object({
  client: object(
    {
      serverSecretRef: ref(),
      operatorClientSecretRef: ref(),
      certManager: object({ serverIssuerRef: issuer, operatorClientIssuerRef: issuer }, ['serverIssuerRef']),
    },
    [],
    rules(
      ['has(self.serverSecretRef) != has(self.certManager)', 'exactly one'],
      ['!(has(self.operatorClientSecretRef) && has(self.certManager))', 'not both'],
    ),
  ),
  peer: object(
    { secretRef: ref(), certManager: object({ issuerRef: issuer }, ['issuerRef']) },
    [],
    rules(['has(self.secretRef) != has(self.certManager)', 'exactly one']),
  ),
});

const fixed = (field: string): readonly (readonly [string, string])[] => [
  [`has(self.${field}) == has(oldSelf.${field})`, `${field} is immutable`],
  [`!has(self.${field}) || self.${field} == oldSelf.${field}`, `${field} is immutable`],
];

const clusterSpec = object(
  {
    replicas: int('int32', { minimum: 0, default: 3 }),
    version,
    storage: storage({ default: { size: '1Gi', medium: '' } }),
    progressDeadlineSeconds: int('int32', { minimum: 1, default: 600 }),
    tls,
    auth: object({ enabled: bool, rootCredentialsSecretRef: ref() }),
    bootstrap: object({
      restore: object(
        { source: location },
        ['source'],
        rules(
          ["!has(self.source.s3) || (has(self.source.s3.key) && self.source.s3.key != '')", 'key'],
          ["!has(self.source.pvc) || (has(self.source.pvc.subPath) && self.source.pvc.subPath != '')", 'subPath'],
        ),
      ),
    }),
    ...template,
  },
  ['version'],
  rules(
    ["!(self.replicas == 0 && self.storage.medium == 'Memory')", 'no pause in memory'],
    ["self.storage.medium != 'Memory' || quantity(string(self.storage.size)).isGreaterThan(quantity('0'))", 'size'],
    ...fixed('tls'),
    ['has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName)', 'immutable'],
    [
      '!has(self.storage.storageClassName) || self.storage.storageClassName == oldSelf.storage.storageClassName',
      'immutable',
    ],
    ...fixed('auth'),
    ['!has(self.auth) || !self.auth.enabled || (has(self.tls) && has(self.tls.client))', 'auth needs tls'],
    ['!has(self.auth) || !self.auth.enabled || has(self.auth.rootCredentialsSecretRef)', 'auth needs a Secret'],
    ...fixed('bootstrap'),
    ["!(has(self.bootstrap) && has(self.bootstrap.restore) && self.storage.medium == 'Memory')", 'no restore'],
  ),
);

const condition = object(
  {
    type: text({ maxLength: 316 }),
    status: text({ enum: ['True', 'False', 'Unknown'] }),
    observedGeneration: int('int64', { minimum: 0 }),
    lastTransitionTime: text({ format: 'date-time' }),
    reason: text({ minLength: 1, maxLength: 1024 }),
    message: text({ maxLength: 32768 }),
  },
  ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
);
/** Without a list type: atomic. */
const conditions = list(condition);

const clusterStatus = object({
  readyMembers: int('int32'),
  selector: text(),
  brokenMembers: int('int32'),
  clusterID: text(),
  clusterToken: text(),
  authEnabled: bool,
  observed: object({ replicas: int('int32'), version: text(), storage: storage(), ...template }, [
    'replicas',
    'version',
    'storage',
  ]),
  progressDeadline: text({ format: 'date-time' }),
  conditions,
});

const memberSpec = object(
  {
    clusterName: text({ minLength: 1 }),
    version,
    storage: storage(),
    ...template,
    bootstrap: bool,
    initialCluster: text(),
    clusterToken: text(),
    replicas: int('int32', { default: 1, minimum: 1, maximum: 1 }),
    dormant: bool,
    tls: object({ clientServerSecretRef: ref(), clientMTLS: bool, peerSecretRef: ref(), peerAutoTLS: bool }),
    restore: object({ source: location }, ['source']),
  },
  ['clusterName', 'version', 'storage', 'initialCluster', 'clusterToken'],
);
const memberStatus = object({
  memberID: text(),
  podName: text(),
  podUID: text(),
  pvcName: text(),
  isVoter: bool,
  replicas: int('int32'),
  selector: text(),
  version: text(),
  conditions,
});

const rule = object(
  {
    all: bool,
    freeSpaceAbove: quantity(),
    quotaUsageAbove: text({ pattern: '^([1-9][0-9]?|100)%$' }),
    minReclaim: quantity(),
  },
  [],
);
const outcome = object(
  {
    name: text(),
    role: text(),
    outcome: text(),
    reason: text(),
    dbSizeBefore: int('int64'),
    dbSizeAfter: int('int64'),
    reclaimedBytes: int('int64'),
    finishedAt: text({ format: 'date-time' }),
  },
  ['name'],
);

function definition(
  kind: string,
  plural: string,
  spec: Schema,
  status: Schema,
  scale?: Schema,
): CustomResourceDefinition {
  const openAPIV3Schema = object({ apiVersion: text(), kind: text(), metadata: { type: 'object' }, spec, status }, [
    'spec',
  ]);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {}, ...(scale && { scale }) },
          schema: { openAPIV3Schema },
        },
      ],
    },
  };
}

const scaledBy = (statusReplicasPath: string): Schema => ({
  specReplicasPath: '.spec.replicas',
  statusReplicasPath,
  labelSelectorPath: '.status.selector',
});

export const baselineCrds: readonly CustomResourceDefinition[] = [
  definition('EtcdCluster', 'etcdclusters', clusterSpec, clusterStatus, scaledBy('.status.readyMembers')),
  definition('EtcdMember', 'etcdmembers', memberSpec, memberStatus, scaledBy('.status.replicas')),
  definition(
    'EtcdSnapshot',
    'etcdsnapshots',
    object({ clusterRef: ref(), destination: location }, ['clusterRef', 'destination']),
    object({
      phase: text(),
      artifact: object({ uri: text(), sizeBytes: int('int64'), checksum: text() }, ['uri']),
      conditions,
    }),
  ),
  definition(
    'EtcdDefrag',
    'etcddefrags',
    object({ clusterRef: ref(), rule, ttlSecondsAfterFinished: int('int32', { minimum: 0 }) }, ['clusterRef']),
    object({
      phase: text(),
      startedAt: text({ format: 'date-time' }),
      completedAt: text({ format: 'date-time' }),
      defragmented: int('int32'),
      members: list(outcome, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
      conditions,
    }),
  ),
  definition(
    'EtcdDefragPolicy',
    'etcddefragpolicies',
    object(
      {
        clusterRef: ref(),
        schedule: text({ minLength: 1 }),
        suspend: bool,
        concurrencyPolicy: text({ enum: ['Allow', 'Forbid'] }),
        startingDeadlineSeconds: int('int64', { minimum: 0 }),
        historyLimit: int('int32', { minimum: 0 }),
        rule,
        ttlSecondsAfterFinished: int('int32', { minimum: 0 }),
      },
      ['clusterRef', 'schedule'],
    ),
    object({
      lastScheduleTime: text({ format: 'date-time' }),
      lastSuccessfulTime: text({ format: 'date-time' }),
      active: list(ref(), { 'x-kubernetes-list-type': 'atomic' }),
      conditions,
    }),
  ),
];
