/** The largest objects that the schemas allow, within the size limit of a request. */
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const key = (i: number): string => `${'prefix.'.repeat(10)}example.com/${'k'.repeat(50)}-${i}`;
const map = (count: number): Record<string, string> => Object.fromEntries(many(count, (i) => [key(i), 'v'.repeat(63)]));
const selector = {
  matchLabels: map(8),
  matchExpressions: many(8, (i) => ({ key: `e-${i}`, operator: 'In', values: many(8, () => 'v'.repeat(63)) })),
};
const podTerm = {
  labelSelector: selector,
  namespaceSelector: selector,
  matchLabelKeys: many(16, (i) => `m-${i}`),
  mismatchLabelKeys: many(16, (i) => `n-${i}`),
  namespaces: many(16, () => 'n'.repeat(63)),
  topologyKey: key(0),
};
const podTerms = {
  preferredDuringSchedulingIgnoredDuringExecution: many(8, () => ({ weight: 1, podAffinityTerm: podTerm })),
  requiredDuringSchedulingIgnoredDuringExecution: many(8, () => podTerm),
};
const nodeTerm = {
  matchExpressions: many(32, (i) => ({ key: `e-${i}`, operator: 'In', values: many(4, () => 'v'.repeat(63)) })),
};

const amounts = {
  memory: '1Gi',
  'ephemeral-storage': '1Gi',
  ...Object.fromEntries(many(4, (i) => [`vendor.com/r${i}`, 1])),
};

export const largest = {
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: many(8, () => ({ weight: 1, preference: nodeTerm })),
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: many(8, () => nodeTerm) },
    },
    podAffinity: podTerms,
    podAntiAffinity: podTerms,
  },
  topologySpreadConstraints: many(32, (i) => ({
    topologyKey: key(i),
    maxSkew: 1,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: map(8) },
    matchLabelKeys: many(16, (j) => `m-${j}`),
  })),
  tolerations: many(64, (i) => ({ key: key(i), operator: 'Equal', value: 'v'.repeat(63), effect: 'NoExecute' })),
  nodeSelector: map(64),
  additionalMetadata: {
    labels: map(64),
    annotations: Object.fromEntries(many(64, (i) => [`a-${i}`, 'x'.repeat(1000)])),
  },
  extraArgs: many(32, (i) => `--flag-${i}=${'x'.repeat(490)}`),
  imagePullSecrets: many(64, (i) => ({ name: `${'s'.repeat(240)}${i}` })),
  resources: { requests: { cpu: '1', ...amounts }, limits: { cpu: '2', ...amounts } },
  options: { autoCompactionMode: 'revision', autoCompactionRetention: '9'.repeat(18), quotaBackendBytes: 1 },
};
