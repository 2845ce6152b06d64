/** Builds a CustomResourceDefinition from a schema. */
import type { TSchema } from 'typebox';
import { type CelRule, cel } from './cel.ts';
import { GROUP, VERSION } from './names.ts';

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** Above zero: only with `kubectl get -o wide`. */
  readonly priority?: number;
}

export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath: string;
}

export interface Kind {
  readonly names: {
    readonly kind: string;
    readonly plural: string;
    readonly singular: string;
    readonly shortNames: readonly string[];
  };
  readonly description: string;
  readonly spec: TSchema;
  readonly status: TSchema;
  readonly columns: readonly PrinterColumn[];
  readonly scale?: ScalePaths;
  /** Rules over the whole object: only these can read `metadata.name`, and both spec and status. */
  readonly rules?: readonly CelRule[];
}

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

/** `kubectl get etcd` lists every kind of this category. */
export const CATEGORY = 'etcd';

/** Plain JSON: properties that TypeBox adds for itself are not enumerable, and JSON drops them. */
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
      names: { ...kind.names, listKind: `${kind.names.kind}List`, categories: [CATEGORY] },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {}, ...(kind.scale && { scale: kind.scale }) },
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
