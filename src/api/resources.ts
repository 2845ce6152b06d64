/** CPU and memory of a member, and the metadata that users add to objects that the operator creates. */
import Type from 'typebox';
import { cel } from './cel.ts';
import type { Accepted } from './meta.ts';
import { GROUP } from './names.ts';
import { ANNOTATION_KEY_PATTERN, LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN, MAX_KEY, mapOf, quantity } from './text.ts';

const RESOURCE_NAME = String.raw`^(cpu|memory|ephemeral-storage|hugepages-[0-9]+[KMG]i|[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,52}[A-Za-z0-9])?)$`;
/** Resources that cannot be overcommitted: Kubernetes requires request and limit to be equal integers. */
const whole = "(k.contains('/') || k.startsWith('hugepages-'))";
/** CEL's isInteger() depends on the representation: 1.5Gi is an integer too. Kubernetes rounds to thousandths. */
const isWhole = (quantity: string): string =>
  `(${quantity}.isInteger() || [${quantity}.asApproximateFloat()].all(n, n < 9e15 && n - double(int(n + 0.0005)) < 0.0005))`;
/** An integer is used as it is: converting it to a string first would double the CEL cost. */
const amount = (map: string): string => `(type(${map}[k]) == int ? quantity('0').add(${map}[k]) : quantity(${map}[k]))`;

/**
 * An unchanged entry is not validated again: beside one that Kubernetes would refuse, others can still be edited. Old values are
 * compared with new ones, because the API server can estimate the size only of new ones.
 */
const stood = '(oldSelf[?k].optMap(old, old == self[k]).orValue(false))';
const limited = '(has(self.limits) && k in self.limits)';
const stoodInBoth = `(oldSelf.?requests[?k].optMap(old, old == self.requests[k]).orValue(false) && oldSelf.?limits[?k].optMap(old, ${limited} && old == self.limits[k]).orValue(!${limited}))`;

/** With more, the CEL rules would exceed the cost limit of the API server. */
const MAX_RESOURCES = 7;

const amounts = (field: string) =>
  mapOf<string | number>(JSON.parse(JSON.stringify(quantity({}))) as object, {
    maxProperties: MAX_RESOURCES,
    ...cel(
      {
        rule: `self.all(k, ${stood} || (size(k) <= 128 && k.matches('${RESOURCE_NAME}') && !k.contains('kubernetes.io/') && !k.startsWith('requests.')))`,
        optionalOldSelf: true,
        message: `resources.${field} has a name that is not a resource: use cpu, memory, ephemeral-storage, hugepages-<size> or one with a domain`,
      },
      {
        rule: `self.all(k, ${stood} || ((type(self[k]) == int || isQuantity(self[k])) && !${amount('self')}.isLessThan(quantity('0'))))`,
        optionalOldSelf: true,
        message: `resources.${field} has a value that is negative or not a quantity: use for example 500m or 1Gi`,
      },
      {
        rule: `self.all(k, ${stood} || !${whole} || ${isWhole(amount('self'))})`,
        optionalOldSelf: true,
        message: `resources.${field}: hugepages and resources with a domain must be integers`,
      },
    ),
  });

const hugepagesHaveCompany = (of: string): string =>
  `!has(${of}.limits) || !${of}.limits.exists(k, k.startsWith('hugepages-')) || 'cpu' in ${of}.limits || 'memory' in ${of}.limits || (has(${of}.requests) && ('cpu' in ${of}.requests || 'memory' in ${of}.requests))`;

export const ResourcesSchema = Type.Object(
  {
    claims: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), request: Type.Optional(Type.String()) }), {
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Must be empty: a member Pod has no resourceClaims. Accepted by earlier versions.',
        ...cel({
          rule: 'size(self) == 0',
          message: 'resources.claims cannot be used: a member Pod has no resourceClaims. Remove it',
        }),
      }),
    ),
    limits: Type.Optional(amounts('limits')),
    requests: Type.Optional(amounts('requests')),
  },
  {
    description: 'CPU and memory of the etcd container. Absent or empty: requests of 100m and 128Mi, no limits.',
    ...cel(
      {
        rule: `!has(self.requests) || !has(self.limits) || self.requests.all(k, ${stoodInBoth} || !(k in self.limits) || !${amount('self.requests')}.isGreaterThan(${amount('self.limits')}))`,
        optionalOldSelf: true,
        message: 'resources.requests asks for more than resources.limits allows: raise the limit or lower the request',
        fieldPath: '.requests',
      },
      {
        rule: `!has(self.requests) || self.requests.all(k, ${stoodInBoth} || !${whole} || (${limited} && ${amount('self.requests')}.compareTo(${amount('self.limits')}) == 0))`,
        optionalOldSelf: true,
        message:
          'resources.requests of hugepages or of a resource with a domain must equal its limit: set both to the same',
        fieldPath: '.requests',
      },
      {
        rule: `${hugepagesHaveCompany('self')} || (oldSelf.hasValue() && !(${hugepagesHaveCompany('oldSelf.value()')}))`,
        optionalOldSelf: true,
        message: 'resources with hugepages also need cpu or memory: add one of them',
        fieldPath: '.limits',
      },
    ),
  },
);

/** Bytes that Kubernetes allows for all annotations, divided by the longest encoding of a character. */
const MAX_ANNOTATIONS = 65_536;

export const AdditionalMetadataSchema = Type.Object(
  {
    labels: Type.Optional(
      mapOf<string>(
        { type: 'string', pattern: LABEL_VALUE_PATTERN, maxLength: 63 },
        {
          maxProperties: 64,
          ...cel({
            rule: `self.all(k, size(k) <= ${MAX_KEY} && k.matches('${LABEL_KEY_PATTERN}'))`,
            message:
              'additionalMetadata.labels has a key that cannot be a label: use an optional DNS prefix with a slash and at most 63 of A-Z, a-z, 0-9, "-", "_" and "."',
          }),
        },
      ),
    ),
    annotations: Type.Optional(
      mapOf<string>(
        { type: 'string', maxLength: MAX_ANNOTATIONS },
        {
          maxProperties: 64,
          ...cel(
            {
              rule: `self.all(k, size(k) <= ${MAX_KEY} && k.matches('${ANNOTATION_KEY_PATTERN}'))`,
              message:
                'additionalMetadata.annotations has a key that cannot be an annotation: use an optional DNS prefix with a slash and at most 63 of A-Z, a-z, 0-9, "-", "_" and "."',
            },
            {
              rule: `self.map(k, size(k) + size(self[k])).sum() <= ${MAX_ANNOTATIONS}`,
              message: `additionalMetadata.annotations has more than ${MAX_ANNOTATIONS} characters: Kubernetes would refuse the Pods`,
            },
          ),
        },
      ),
    ),
  },
  {
    description: `Labels and annotations for Pods, PVCs, Services, the PDB and EtcdMembers, set when they are created. The operator's own take precedence; keys under ${GROUP}/ are ignored, and so are annotations that would weaken the security of Pods or mislead the volume provisioner.`,
  },
);

export type Resources = Accepted<typeof ResourcesSchema>;
export type AdditionalMetadata = Accepted<typeof AdditionalMetadataSchema>;
