/** Where members run. Each spec is added to `version: 3.6.16`. */
import type { EditRow, Row } from './row.ts';

const labels = (matchLabels: object) => ({ matchLabels });
const nodes = (nodeSelectorTerms: readonly object[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const weighted = (weight: number) => ({
  affinity: {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: { topologyKey: 'host' } }],
    },
  },
});
const spread = (constraint: object) => ({
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', ...constraint }],
});
const tolerates = (toleration: object) => ({ tolerations: [toleration] });

export const specs: readonly Row[] = [
  ['spread', { spread: 'Required' }],
  ['no spread', { spread: 'None' }],
  ['another spread', { spread: 'Sometimes' }, 'spec.spread'],
  [
    'spread and node affinity',
    { spread: 'Required', ...nodes([{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }]) },
  ],
  [
    'spread and anti-affinity',
    { spread: 'Required', ...weighted(1) },
    'spread Required and affinity.podAntiAffinity contradict each other',
  ],
  ['preferred spread and anti-affinity', { spread: 'Preferred', ...weighted(1) }],
  ['no spread and anti-affinity', { spread: 'None', ...weighted(100) }],
  ['no weight', weighted(0), 'weight'],
  ['too much weight', weighted(101), 'weight'],
  ['no node terms', nodes([]), 'nodeSelectorTerms'],
  [
    'zones',
    spread({
      labelSelector: labels({ a: 'b' }),
      matchLabelKeys: ['c'],
      minDomains: 3,
      nodeAffinityPolicy: 'Honor',
      nodeTaintsPolicy: 'Ignore',
    }),
  ],
  ['no skew', spread({ maxSkew: 0 }), 'maxSkew'],
  [
    'domains that are not needed',
    spread({ minDomains: 3, whenUnsatisfiable: 'ScheduleAnyway' }),
    'minDomains only works with whenUnsatisfiable: DoNotSchedule',
  ],
  ['another policy', spread({ nodeTaintsPolicy: 'Maybe' }), 'nodeTaintsPolicy'],
  [
    'spread keys without a selector',
    spread({ matchLabelKeys: ['a'] }),
    'matchLabelKeys only works together with labelSelector',
  ],
  [
    'spread keys that the selector has',
    spread({ matchLabelKeys: ['a'], labelSelector: labels({ a: 'b' }) }),
    'a key cannot be in both matchLabelKeys and labelSelector',
  ],
  [
    'zones and hosts',
    {
      topologySpreadConstraints: ['a', 'b'].map((topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: 'ScheduleAnyway',
      })),
    },
  ],
  [
    'zones twice',
    {
      topologySpreadConstraints: [1, 2].map((maxSkew) => ({
        maxSkew,
        topologyKey: 'a',
        whenUnsatisfiable: 'ScheduleAnyway',
      })),
    },
    'two entries with the same topologyKey and whenUnsatisfiable',
  ],

  ['a toleration', tolerates({ key: 'dedicated', operator: 'Equal', value: 'etcd', effect: 'NoSchedule' })],
  ['a toleration of everything', tolerates({ operator: 'Exists' })],
  [
    'a toleration of nothing',
    tolerates({}),
    'a toleration without a key tolerates everything and needs operator: Exists',
  ],
  [
    'a toleration with a needless value',
    tolerates({ key: 'a', operator: 'Exists', value: 'b' }),
    'operator: Exists must have no value',
  ],
  ['a toleration for a while', tolerates({ key: 'a', effect: 'NoExecute', tolerationSeconds: 30 })],
  [
    'a toleration for a while of what does not evict',
    tolerates({ key: 'a', effect: 'NoSchedule', tolerationSeconds: 30 }),
    'tolerationSeconds only works with effect: NoExecute',
  ],
  [
    'a toleration for longer than can be counted',
    tolerates({ key: 'a', effect: 'NoExecute', tolerationSeconds: Number.MAX_SAFE_INTEGER + 1 }),
    'spec.tolerations[0].tolerationSeconds',
  ],
  ['an effect that is none', tolerates({ key: 'a', effect: 'Evict' }), 'effect'],
  ['a node selector', { nodeSelector: { 'kubernetes.io/arch': 'amd64' } }],
  ['a node selector with a bad key', { nodeSelector: { 'a b': 'c' } }, 'nodeSelector has a key that cannot be a label'],
  ['a node selector with a bad value', { nodeSelector: { a: 'b c' } }, 'spec.nodeSelector.a'],
];

export const edits: readonly EditRow[] = [
  ['spread is added to anti-affinity', weighted(1), { ...weighted(1), spread: 'Required' }, 'contradict each other'],
];
