/** Our CRDs compared with those of the Go operator: no field is missing, has another type or is newly required. */
import { describe, expect, test } from 'vitest';
import { baselineCrds } from '../../test/support/builders/baseline-crds.ts';
import type { CustomResourceDefinition } from './crd.ts';
import { crds } from './crds.ts';

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}
interface Column {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly priority?: number;
}
interface Spec {
  readonly scope: string;
  readonly group: string;
  readonly names: Readonly<Record<string, unknown>>;
  readonly versions: readonly [
    {
      readonly name: string;
      readonly subresources: object;
      readonly additionalPrinterColumns: readonly Column[];
      readonly schema: { readonly openAPIV3Schema: Schema };
    },
  ];
}
const specOf = (crd: CustomResourceDefinition): Spec => crd.spec as unknown as Spec;

/** Where ours differs from theirs in a way that a manifest, a script or an object of theirs would notice. */
function differences(theirs: Schema, ours: Schema | undefined, path: string): readonly string[] {
  if (!ours) return [`${path} is missing`];
  const same = (key: 'type' | 'format' | 'default' | 'x-kubernetes-int-or-string'): readonly string[] =>
    JSON.stringify(theirs[key]) === JSON.stringify(ours[key]) ? [] : [`${path} has another ${key}`];
  const refused = (theirs.enum ?? []).filter((value) => ours.enum && !ours.enum.includes(value));
  // What has a default is never missing.
  const needed = (ours.required ?? []).filter((name) => ours.properties?.[name]?.default === undefined);
  const demanded = needed.filter((name) => theirs.properties && !theirs.required?.includes(name));
  const [each, ownEach] = [theirs.items ?? theirs.additionalProperties, ours.items ?? ours.additionalProperties];
  return [
    ...same('type'),
    ...same('format'),
    ...same('default'),
    ...same('x-kubernetes-int-or-string'),
    ...refused.map((value) => `${path} does not take ${String(value)}`),
    ...demanded.map((name) => `${path}.${name} is required`),
    ...Object.entries(theirs.properties ?? {}).flatMap(([name, inner]) =>
      differences(inner, ours.properties?.[name], `${path}.${name}`),
    ),
    ...(each ? differences(each, ownEach, `${path}[*]`) : []),
  ];
}

const pairs = baselineCrds.map((theirs) => {
  const ours = crds.find(({ metadata }) => metadata.name === theirs.metadata.name);
  if (!ours) throw new Error(`no ${theirs.metadata.name}`);
  return [theirs.metadata.name, specOf(theirs), specOf(ours)] as const;
});

test.each(pairs)(
  '%s has every field, with its type, default and values, and demands no more',
  (_name, theirs, ours) => {
    const { properties } = theirs.versions[0].schema.openAPIV3Schema;
    const own = ours.versions[0].schema.openAPIV3Schema.properties;
    expect(Object.keys(properties ?? {})).toEqual(expect.arrayContaining(['spec', 'status']));
    expect(['spec', 'status'].flatMap((part) => differences(properties?.[part] as Schema, own?.[part], part))).toEqual(
      [],
    );
  },
);

test.each(pairs)('%s has the same names and subresources', (_name, theirs, ours) => {
  expect(ours).toMatchObject({ group: theirs.group, scope: 'Namespaced', names: theirs.names });
  expect(ours.versions[0].name).toBe(theirs.versions[0].name);
  expect(ours.versions[0].subresources).toEqual(theirs.versions[0].subresources);
});

describe('the narrow view', () => {
  const narrow = (kind: string): readonly string[] => {
    const crd = crds.find(({ spec }) => (spec['names'] as { readonly kind: string }).kind === kind);
    const columns = crd ? specOf(crd).versions[0].additionalPrinterColumns : [];
    return columns.filter(({ priority = 0 }) => priority === 0).map(({ name, jsonPath }) => `${name} ${jsonPath}`);
  };
  const ready = '.status.conditions[?(@.type=="Ready")].status';
  test.each([
    [
      'EtcdCluster',
      ['Version .spec.version', 'Replicas .spec.replicas', 'Ready .status.readyMembers', 'Suspend .spec.suspend'],
    ],
    ['EtcdMember', ['Cluster .spec.clusterName', 'Version .spec.version', 'Running .status.version', `Ready ${ready}`]],
    ['EtcdSnapshot', ['Cluster .spec.clusterRef.name', 'Phase .status.phase']],
    ['EtcdDefrag', ['Cluster .spec.clusterRef.name', 'Phase .status.phase', 'Defragmented .status.defragmented']],
    [
      'EtcdDefragPolicy',
      [
        'Cluster .spec.clusterRef.name',
        'Schedule .spec.schedule',
        'Suspend .spec.suspend',
        'Last Schedule .status.lastScheduleTime',
      ],
    ],
  ])('of %s has the columns of the Go operator, whether it is suspended, and at most one more', (kind, columns) => {
    const shown = narrow(kind);
    expect(shown).toEqual(expect.arrayContaining([...columns, 'Age .metadata.creationTimestamp']));
    expect(shown.length).toBeLessThanOrEqual(columns.length + 2);
  });
});

test('S1: no field of a spec names a namespace, so that a user cannot refer to an object of another one', () => {
  const fieldsOf = (schema: object): readonly string[] =>
    Object.entries(schema).flatMap(([key, value]: [string, unknown]) => {
      if (typeof value !== 'object' || value === null) return [];
      return [...(key === 'properties' ? Object.keys(value) : []), ...fieldsOf(value)];
    });
  const fields = crds.flatMap((crd) => fieldsOf(JSON.parse(JSON.stringify(crd.spec)) as object));
  expect(fields).toContain('credentialsSecretRef'); // otherwise nothing was looked at
  expect(fields).not.toContain('namespace');
});
