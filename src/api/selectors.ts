/** Label selectors and node selectors, validated as strictly as by Kubernetes: an accepted selector makes a valid Pod. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { optionalList } from './optional.ts';
import { atomic, labelKey, labelMap, labelValue } from './text.ts';

const VALUES = 64;
const EXPRESSIONS = 32;

const valuesFor = (none: string): string =>
  `self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : ${none}`;
const noValues = '!has(self.values) || size(self.values) == 0';

const LabelRequirementSchema = Type.Object(
  {
    key: labelKey('The label.'),
    operator: Type.Enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], { type: 'string' }),
    values: optionalList(labelValue(), VALUES),
  },
  cel({
    rule: valuesFor(noValues),
    message: 'In and NotIn need values; Exists and DoesNotExist must have none',
    messageExpression:
      "'matchExpressions: operator ' + self.operator + ' of key ' + self.key + (self.operator in ['In', 'NotIn'] ? ' needs at least one value' : ' must have no values')",
  }),
);

export const LabelSelectorSchema = Type.Object(
  {
    matchExpressions: optionalList(LabelRequirementSchema, EXPRESSIONS),
    matchLabels: Type.Optional(labelMap('matchLabels', 'Labels that must be present with these values.')),
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

/** A CEL expression: whether a selector refers to a label key. */
export const selectsKey = (selector: string, key: string): string =>
  `(has(${selector}.matchLabels) && ${key} in ${selector}.matchLabels) || (has(${selector}.matchExpressions) && ${selector}.matchExpressions.exists(e, e.key == ${key}))`;

const NodeRequirementSchema = Type.Object(
  {
    key: labelKey('The label of the node.'),
    operator: Type.Enum(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'], { type: 'string' }),
    values: optionalList(labelValue(), VALUES),
  },
  cel({
    rule: valuesFor(`self.operator in ['Gt', 'Lt'] ? has(self.values) && size(self.values) == 1 : ${noValues}`),
    message: 'In and NotIn need values, Gt and Lt exactly one; Exists and DoesNotExist must have none',
    messageExpression:
      "'nodeAffinity: operator ' + self.operator + ' of key ' + self.key + (self.operator in ['In', 'NotIn'] ? ' needs at least one value' : self.operator in ['Gt', 'Lt'] ? ' needs exactly one value' : ' must have no values')",
  }),
);

const NodeFieldSchema = Type.Object({
  key: Type.Enum(['metadata.name'], {
    type: 'string',
    description: 'metadata.name is the only field of a node that can be selected.',
  }),
  operator: Type.Enum(['In', 'NotIn'], { type: 'string' }),
  values: Type.Array(Type.String({ pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$', maxLength: 253 }), {
    minItems: 1,
    maxItems: 1,
    ...atomic,
  }),
});

export const NodeSelectorTermSchema = Type.Object(
  {
    matchExpressions: optionalList(NodeRequirementSchema, EXPRESSIONS),
    matchFields: optionalList(NodeFieldSchema, EXPRESSIONS),
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

export const NodeSelectorSchema = labelMap('nodeSelector', 'Members run only on nodes with all of these labels.');
