/** Schemas of strings with a syntax that Kubernetes defines. */
import Type from 'typebox';
import { MAX_QUANTITY_LENGTH } from '../lib/quantity.ts';
import { type CelRule, cel } from './cel.ts';

const LABEL_NAME = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
const DNS_LABEL = '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?';
const SUBDOMAIN = `${DNS_LABEL}([.]${DNS_LABEL})*`;

export const LABEL_VALUE_PATTERN = `^(${LABEL_NAME})?$`;
export const LABEL_KEY_PATTERN = `^(${SUBDOMAIN}/)?${LABEL_NAME}$`;
export const ANNOTATION_KEY_PATTERN = `^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?/)?${LABEL_NAME}$`;
export const SUBDOMAIN_PATTERN = `^${SUBDOMAIN}$`;

/** A little less than Kubernetes allows for prefix and name together, so that one limit is enough. */
export const MAX_KEY = 253;

export const labelKey = (description?: string) =>
  Type.String({ pattern: LABEL_KEY_PATTERN, maxLength: MAX_KEY, ...(description !== undefined && { description }) });
export const labelValue = () => Type.String({ pattern: LABEL_VALUE_PATTERN, maxLength: 63 });
export const subdomain = (description: string) =>
  Type.String({ pattern: SUBDOMAIN_PATTERN, maxLength: 253, description });
export const dnsLabel = () => Type.String({ pattern: `^${DNS_LABEL}$`, maxLength: 63 });

/** A list that is replaced as a whole. */
export const atomic = { 'x-kubernetes-list-type': 'atomic' } as const;

/** An object with arbitrary keys. */
export const mapOf = <T>(values: object, options: object = {}) =>
  Type.Unsafe<Readonly<Record<string, T>>>({ type: 'object', additionalProperties: values, ...options });

/** Labels that are valid on a Pod. */
export const labelMap = (field: string, description: string) =>
  mapOf<string>(JSON.parse(JSON.stringify(labelValue())) as object, {
    maxProperties: 64,
    description,
    ...cel({
      rule: `self.all(k, size(k) <= ${MAX_KEY} && k.matches('${LABEL_KEY_PATTERN}'))`,
      message: `${field} has a key that cannot be a label: use an optional DNS prefix with a slash and at most 63 of A-Z, a-z, 0-9, '-', '_' and '.'`,
    }),
  });

/** Unlike those of a DNS name, the parts of an object's name may have more than 63 characters. */
const NAME_PART = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const NAME = `${NAME_PART}([.]${NAME_PART})*`;
const MAX_NAME = 253;
/** What an object can be called. The length first: the pattern takes time quadratic in it. */
export const isObjectName = (name: string): boolean => name.length <= MAX_NAME && new RegExp(`^${NAME}$`).test(name);
/** The name of an object, or none yet: the rule below has the better message. */
const OBJECT_NAME = { pattern: `^(${NAME})?$`, maxLength: MAX_NAME };

/** A reference within the same namespace. With a namespace field, a user could read Secrets of other namespaces through the operator. */
export const localReference = (field: string, description: string, name: object = OBJECT_NAME) =>
  Type.Object(
    { name: Type.Optional(Type.String({ default: '', ...name })) },
    {
      description,
      'x-kubernetes-map-type': 'atomic',
      ...cel({
        rule: "self.name != ''",
        message: `${field}.name is empty: set it, or remove ${field}`,
      }),
    },
  );

/** At most three digits of exponent: the API server takes seconds to cap a quantity with an exponent of millions at 8 EiB. */
const QUANTITY = String.raw`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?0*[0-9]{1,3}))?$`;

/** Integers are accepted too, and CEL's quantity() takes only strings: hence string(self) in every rule. */
export const quantity = (options: Readonly<Record<string, unknown>>) =>
  Type.Unsafe<string | number>({
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    'x-kubernetes-int-or-string': true,
    pattern: QUANTITY,
    maxLength: MAX_QUANTITY_LENGTH,
    ...options,
  });

/** A rule for such a field. */
export const aboveZero = (field: string, example: string): CelRule => ({
  rule: "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
  message: `${field} must be greater than zero, such as ${example}`,
  messageExpression: `'${field} is ' + string(self) + ': it must be greater than zero, such as ${example}'`,
});
