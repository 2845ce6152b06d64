/** Where members run: affinity, spread, tolerations. */
import Type from 'typebox';
import { cel } from './cel.ts';
import type { Accepted } from './meta.ts';
import { optionalList } from './optional.ts';
import { LabelSelectorSchema, NodeSelectorTermSchema, selectsKey } from './selectors.ts';
import { atomic, dnsLabel, labelKey, labelValue } from './text.ts';

const TERMS = 32;
const weight = () => Type.Integer({ format: 'int32', minimum: 1, maximum: 100 });
const keys = () => optionalList(labelKey(), 16);

const keysNeedSelector = (field: string) => ({
  rule: `!has(self.${field}) || size(self.${field}) == 0 || has(self.labelSelector)`,
  message: `${field} only works together with labelSelector: add one, or remove ${field}`,
  fieldPath: `.${field}`,
});
const keysOnce = (field: string) => ({
  rule: `!has(self.${field}) || !has(self.labelSelector) || self.${field}.all(k, !(${selectsKey('self.labelSelector', 'k')}))`,
  message: `a key cannot be in both ${field} and labelSelector: remove it from one of them`,
  fieldPath: `.${field}`,
});

const PodAffinityTermSchema = Type.Object(
  {
    labelSelector: Type.Optional(LabelSelectorSchema),
    matchLabelKeys: keys(),
    mismatchLabelKeys: keys(),
    namespaceSelector: Type.Optional(LabelSelectorSchema),
    namespaces: optionalList(dnsLabel(), 64),
    topologyKey: labelKey('The node label whose values are the topology domains, such as kubernetes.io/hostname.'),
  },
  cel(keysNeedSelector('matchLabelKeys'), keysNeedSelector('mismatchLabelKeys'), keysOnce('matchLabelKeys'), {
    rule: '!has(self.matchLabelKeys) || !has(self.mismatchLabelKeys) || self.matchLabelKeys.all(k, !(k in self.mismatchLabelKeys))',
    message: 'a key cannot be in both matchLabelKeys and mismatchLabelKeys: remove it from one of them',
    fieldPath: '.mismatchLabelKeys',
  }),
);

const podTerms = () => ({
  preferredDuringSchedulingIgnoredDuringExecution: optionalList(
    Type.Object({ podAffinityTerm: PodAffinityTermSchema, weight: weight() }),
    TERMS,
  ),
  requiredDuringSchedulingIgnoredDuringExecution: optionalList(PodAffinityTermSchema, TERMS),
});

export const AffinitySchema = Type.Object(
  {
    nodeAffinity: Type.Optional(
      Type.Object({
        preferredDuringSchedulingIgnoredDuringExecution: optionalList(
          Type.Object({ preference: NodeSelectorTermSchema, weight: weight() }),
          TERMS,
        ),
        requiredDuringSchedulingIgnoredDuringExecution: Type.Optional(
          Type.Object(
            { nodeSelectorTerms: Type.Array(NodeSelectorTermSchema, { minItems: 1, maxItems: TERMS, ...atomic }) },
            { 'x-kubernetes-map-type': 'atomic' },
          ),
        ),
      }),
    ),
    podAffinity: Type.Optional(Type.Object(podTerms())),
    podAntiAffinity: Type.Optional(Type.Object(podTerms())),
  },
  { description: 'As in a Pod. Replaces the default of keeping members on different nodes.' },
);

const TopologySpreadConstraintSchema = Type.Object(
  {
    labelSelector: Type.Optional(LabelSelectorSchema),
    matchLabelKeys: keys(),
    maxSkew: Type.Integer({ format: 'int32', minimum: 1 }),
    minDomains: Type.Optional(Type.Integer({ format: 'int32', minimum: 1 })),
    nodeAffinityPolicy: Type.Optional(Type.Enum(['Honor', 'Ignore'], { type: 'string' })),
    nodeTaintsPolicy: Type.Optional(Type.Enum(['Honor', 'Ignore'], { type: 'string' })),
    topologyKey: labelKey('The node label whose values are the topology domains, such as topology.kubernetes.io/zone.'),
    whenUnsatisfiable: Type.Enum(['DoNotSchedule', 'ScheduleAnyway'], { type: 'string' }),
  },
  cel(
    {
      rule: "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
      message: 'minDomains only works with whenUnsatisfiable: DoNotSchedule: change that, or remove minDomains',
      fieldPath: '.minDomains',
    },
    keysNeedSelector('matchLabelKeys'),
    keysOnce('matchLabelKeys'),
  ),
);

export const TopologySpreadConstraintsSchema = Type.Array(TopologySpreadConstraintSchema, {
  maxItems: TERMS,
  ...atomic,
  description:
    'As in a Pod. Replaces the default of spreading members over zones. Of members, not of the Jobs of snapshots.',
  ...cel({
    rule: 'self.all(a, self.exists_one(b, b.topologyKey == a.topologyKey && b.whenUnsatisfiable == a.whenUnsatisfiable))',
    message:
      'topologySpreadConstraints has two entries with the same topologyKey and whenUnsatisfiable: keep one of them',
  }),
});

const TolerationSchema = Type.Object(
  {
    effect: Type.Optional(Type.Enum(['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'], { type: 'string' })),
    key: Type.Optional(labelKey()),
    operator: Type.Optional(Type.Enum(['Exists', 'Equal'], { type: 'string' })),
    tolerationSeconds: Type.Optional(
      Type.Integer({ format: 'int64', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
    ),
    value: Type.Optional(labelValue()),
  },
  cel(
    {
      rule: "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
      message: 'a toleration without a key tolerates everything and needs operator: Exists; otherwise set its key',
    },
    {
      rule: "!has(self.value) || self.value == '' || !has(self.operator) || self.operator == 'Equal'",
      message: 'a toleration with operator: Exists must have no value: remove it, or use operator: Equal',
      fieldPath: '.value',
    },
    {
      rule: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
      message: 'tolerationSeconds only works with effect: NoExecute: set that effect, or remove tolerationSeconds',
      fieldPath: '.tolerationSeconds',
    },
  ),
);

export const TolerationsSchema = Type.Array(TolerationSchema, {
  maxItems: 64,
  ...atomic,
  description: 'As in a Pod: node taints that members tolerate.',
});

export const SpreadSchema = Type.Enum(['Preferred', 'Required', 'None'], {
  type: 'string',
  description:
    'How members are spread. Preferred: over nodes and zones where possible. Required: never two members on one node. ' +
    'None: left to the scheduler. Absent: Preferred; None for clusters that the earlier operator created.',
});

export type Affinity = Accepted<typeof AffinitySchema>;
export type TopologySpreadConstraint = Accepted<typeof TopologySpreadConstraintSchema>;
