/** Where members run. Each spec is added to `version: 3.6.16`. */
import type { EditRow, Row } from './row.ts';

const labels = (matchLabels: object) => ({ matchLabels });
const expressions = (...matchExpressions: object[]) => ({ matchExpressions });
const podTerm = (term: object) => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', ...term }] } },
});
const nodeTerm = (...matchExpressions: object[]) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
  },
});
const nodeField = (field: object) => ({
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [field] }] } },
  },
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
  ['spread and node affinity', { spread: 'Required', ...nodeTerm({ key: 'a', operator: 'Exists' }) }],
  [
    'spread and anti-affinity',
    { spread: 'Required', ...weighted(1) },
    'spread Required and affinity.podAntiAffinity contradict each other',
  ],
  ['preferred spread and anti-affinity', { spread: 'Preferred', ...weighted(1) }],
  ['no spread and anti-affinity', { spread: 'None', ...weighted(100) }],
  ['no weight', weighted(0), 'weight'],
  ['too much weight', weighted(101), 'weight'],
  ['a Pod affinity', podTerm({ labelSelector: labels({ a: 'b' }), namespaces: ['x'], namespaceSelector: {} })],
  ['a Pod affinity without a topology', podTerm({ topologyKey: '' }), 'topologyKey'],
  ['a namespace that cannot be one', podTerm({ namespaces: ['X'] }), 'namespaces[0]'],
  ['a selector with values', podTerm({ labelSelector: expressions({ key: 'a', operator: 'In', values: ['b'] }) })],
  [
    'In without values',
    podTerm({ labelSelector: expressions({ key: 'a', operator: 'In' }) }),
    'operator In of key a needs at least one value',
  ],
  [
    'Exists with values',
    podTerm({ labelSelector: expressions({ key: 'a', operator: 'Exists', values: ['b'] }) }),
    'operator Exists of key a must have no values',
  ],
  ['an operator that is none', podTerm({ labelSelector: expressions({ key: 'a', operator: 'Like' }) }), 'operator'],
  [
    'a selector with a bad key',
    podTerm({ labelSelector: labels({ 'a b': 'c' }) }),
    'matchLabels has a key that cannot be a label',
  ],
  ['a selector with a bad value', podTerm({ labelSelector: labels({ a: 'b c' }) }), 'matchLabels.a'],
  ['keys to match', podTerm({ labelSelector: labels({ a: 'b' }), matchLabelKeys: ['c'], mismatchLabelKeys: ['d'] })],
  [
    'keys to match without a selector',
    podTerm({ matchLabelKeys: ['c'] }),
    'matchLabelKeys only works together with labelSelector',
  ],
  [
    'keys not to match without a selector',
    podTerm({ mismatchLabelKeys: ['c'] }),
    'mismatchLabelKeys only works together with labelSelector',
  ],
  [
    'a key to match that the selector has',
    podTerm({ labelSelector: labels({ a: 'b' }), matchLabelKeys: ['a'] }),
    'a key cannot be in both matchLabelKeys and labelSelector',
  ],
  [
    'a key to match and not to match',
    podTerm({ labelSelector: labels({ a: 'b' }), matchLabelKeys: ['c'], mismatchLabelKeys: ['c'] }),
    'a key cannot be in both matchLabelKeys and mismatchLabelKeys',
  ],
  [
    'a node affinity',
    nodeTerm({ key: 'a', operator: 'In', values: ['b'] }, { key: 'n', operator: 'Gt', values: ['5'] }),
  ],
  ['node: In without values', nodeTerm({ key: 'a', operator: 'In' }), 'operator In of key a needs at least one value'],
  [
    'node: Gt with two values',
    nodeTerm({ key: 'a', operator: 'Gt', values: ['1', '2'] }),
    'operator Gt of key a needs exactly one value',
  ],
  [
    'node: Exists with a value',
    nodeTerm({ key: 'a', operator: 'Exists', values: ['1'] }),
    'operator Exists of key a must have no values',
  ],
  [
    'no node terms',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    'nodeSelectorTerms',
  ],
  ['a node by name', nodeField({ key: 'metadata.name', operator: 'In', values: ['node-1'] })],
  [
    'a node by another field',
    nodeField({ key: 'spec.podCIDR', operator: 'In', values: ['node-1'] }),
    'matchFields[0].key',
  ],
  [
    'zones',
    spread({
      labelSelector: labels({ a: 'b' }),
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
  ['an effect that is none', tolerates({ key: 'a', effect: 'Evict' }), 'effect'],
  ['a node selector', { nodeSelector: { 'kubernetes.io/arch': 'amd64' } }],
  ['a node selector with a bad key', { nodeSelector: { 'a b': 'c' } }, 'nodeSelector has a key that cannot be a label'],
  ['a node selector with a bad value', { nodeSelector: { a: 'b c' } }, 'spec.nodeSelector.a'],
];

export const edits: readonly EditRow[] = [
  ['spread is added to anti-affinity', weighted(1), { ...weighted(1), spread: 'Required' }, 'contradict each other'],
];
