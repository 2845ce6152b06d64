/** From a schema to the CustomResourceDefinition that the API server takes. */
import type { TSchema } from 'typebox';
import { GROUP, VERSION } from './names.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
}

export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath: string;
}

export interface Kind {
  readonly names: { readonly kind: string; readonly plural: string; readonly singular: string };
  readonly description: string;
  readonly spec: TSchema;
  readonly status: TSchema;
  readonly columns: readonly PrinterColumn[];
  readonly scale: ScalePaths;
  /** Rules over the whole object: the only place that can see `metadata.name`. */
  readonly rules?: readonly CelRule[];
}

/** A rule of the Common Expression Language that the API server runs at admission. */
export interface CelRule {
  readonly rule: string;
  readonly message: string;
  /** The rule also runs when there is no old object; `oldSelf` is then an empty optional. */
  readonly optionalOldSelf?: boolean;
  /** Which field the message is about, when it is not the one that carries the rule. */
  readonly fieldPath?: string;
}

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** For the options of a schema: the rules that its value must keep. */
export const cel = (...rules: readonly CelRule[]): { readonly 'x-kubernetes-validations': readonly CelRule[] } => ({
  'x-kubernetes-validations': rules,
});

/** Plain data: what TypeBox adds for itself is not enumerable and does not survive the trip. */
const plain = (schema: TSchema): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;

export function customResourceDefinition(kind: Kind): CustomResourceDefinition {
  const age: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.names.plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { ...kind.names, listKind: `${kind.names.kind}List` },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {}, scale: kind.scale },
          additionalPrinterColumns: [...kind.columns, age],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: kind.description,
              required: ['spec'],
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec: plain(kind.spec),
                status: plain(kind.status),
              },
              ...(kind.rules && cel(...kind.rules)),
            },
          },
        },
      ],
    },
  };
}
