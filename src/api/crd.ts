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

export const namesOf = ({ kind, plural }: { readonly kind: string; readonly plural: string }, shortName: string) => ({
  kind,
  plural,
  singular: kind.toLowerCase(),
  shortNames: [shortName],
});

export interface Kind {
  readonly names: ReturnType<typeof namesOf>;
  readonly description: string;
  readonly spec: TSchema;
  readonly status: TSchema;
  readonly columns: readonly PrinterColumn[];
  /** Of a kind with a scale subresource: the field with the number of replicas that are ready. */
  readonly scaledReplicas?: string;
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
const CATEGORY = 'etcd';

/** Plain JSON: properties that TypeBox adds for itself are not enumerable, and JSON drops them. */
const plain = (schema: TSchema): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;

/** The selector of a scalable kind is always in the same field. */
const scaleOf = (statusReplicasPath: string) => ({
  specReplicasPath: '.spec.replicas',
  statusReplicasPath,
  labelSelectorPath: '.status.selector',
});

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
          subresources: { status: {}, ...(kind.scaledReplicas && { scale: scaleOf(kind.scaledReplicas) }) },
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
