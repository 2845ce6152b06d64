/** Affinities and selectors: the same rules at every place that has them. Each spec is added to `version: 3.6.16`. */
import type { Row } from './row.ts';

type Within = (part: object) => object;
type Places = readonly (readonly [place: string, within: Within])[];
const everywhere = (places: Places, rows: (within: Within) => readonly Row[]): readonly Row[] =>
  places.flatMap(([place, within]) =>
    rows(within).map(([what, ...rest]): Row => [`in ${place}: ${what}`, ...rest] as Row),
  );

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

const podTerms: Places = (['podAffinity', 'podAntiAffinity'] as const).flatMap((kind) => [
  [`required ${kind}`, (term) => ({ affinity: { [kind]: { [REQUIRED]: [{ topologyKey: 'zone', ...term }] } } })],
  [
    `preferred ${kind}`,
    (term) => ({
      affinity: { [kind]: { [PREFERRED]: [{ weight: 1, podAffinityTerm: { topologyKey: 'zone', ...term } }] } },
    }),
  ],
]);
const selectors: Places = [
  ...podTerms.flatMap(
    ([place, term]): Places => [
      [`the labelSelector of ${place}`, (labelSelector) => term({ labelSelector })],
      [`the namespaceSelector of ${place}`, (namespaceSelector) => term({ namespaceSelector })],
    ],
  ),
  [
    'topologySpreadConstraints',
    (labelSelector) => ({
      topologySpreadConstraints: [
        { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector },
      ],
    }),
  ],
  ...(['clients', 'monitoring'] as const).flatMap((who) =>
    (['podSelector', 'namespaceSelector'] as const).map((kind): Places[number] => [
      `the ${kind} of ${who}`,
      (selector) => ({ networkPolicy: { [who]: [{ [kind]: selector }] } }),
    ]),
  ),
];
const nodeTerms: Places = [
  ['required nodeAffinity', (term) => ({ affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [term] } } } })],
  [
    'preferred nodeAffinity',
    (preference) => ({ affinity: { nodeAffinity: { [PREFERRED]: [{ weight: 1, preference }] } } }),
  ],
];

const selecting = { labelSelector: { matchLabels: { a: 'b' } } };

export const specs: readonly Row[] = [
  ...everywhere(podTerms, (term) => [
    [
      'everything',
      term({
        ...selecting,
        namespaces: ['x'],
        namespaceSelector: {},
        matchLabelKeys: ['c'],
        mismatchLabelKeys: ['d'],
      }),
    ],
    ['no topology', term({ topologyKey: '' }), 'topologyKey'],
    ['a namespace that cannot be one', term({ namespaces: ['X'] }), 'namespaces[0]'],
    [
      'keys to match without a selector',
      term({ matchLabelKeys: ['c'] }),
      'matchLabelKeys only works together with labelSelector',
    ],
    [
      'keys not to match without a selector',
      term({ mismatchLabelKeys: ['c'] }),
      'mismatchLabelKeys only works together with labelSelector',
    ],
    [
      'a key to match that the selector has',
      term({ ...selecting, matchLabelKeys: ['a'] }),
      'a key cannot be in both matchLabelKeys and labelSelector',
    ],
    [
      'a key to match and not to match',
      term({ ...selecting, matchLabelKeys: ['c'], mismatchLabelKeys: ['c'] }),
      'a key cannot be in both matchLabelKeys and mismatchLabelKeys',
    ],
  ]),
  ...everywhere(selectors, (selector) => [
    [
      'labels and expressions',
      selector({
        matchLabels: { a: 'b' },
        matchExpressions: [
          { key: 'c', operator: 'In', values: ['d'] },
          { key: 'e', operator: 'Exists' },
        ],
      }),
    ],
    [
      'In without values',
      selector({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
      'operator In of key a needs at least one value',
    ],
    [
      'Exists with values',
      selector({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
      'operator Exists of key a must have no values',
    ],
    ['an operator that is none', selector({ matchExpressions: [{ key: 'a', operator: 'Like' }] }), 'operator'],
    ['a bad key', selector({ matchLabels: { 'a b': 'c' } }), 'matchLabels has a key that cannot be a label'],
    ['a bad value', selector({ matchLabels: { a: 'b c' } }), 'matchLabels.a'],
  ]),
  ...everywhere(nodeTerms, (term) => [
    [
      'labels of every kind, and a name',
      term({
        matchExpressions: [
          { key: 'a', operator: 'In', values: ['b'] },
          { key: 'n', operator: 'Gt', values: ['5'] },
        ],
        matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }],
      }),
    ],
    [
      'In without values',
      term({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
      'operator In of key a needs at least one value',
    ],
    [
      'Gt with two values',
      term({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1', '2'] }] }),
      'operator Gt of key a needs exactly one value',
    ],
    [
      'Exists with a value',
      term({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['1'] }] }),
      'operator Exists of key a must have no values',
    ],
    [
      'another field',
      term({ matchFields: [{ key: 'spec.podCIDR', operator: 'In', values: ['node-1'] }] }),
      'matchFields[0].key',
    ],
  ]),
];
