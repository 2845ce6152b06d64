/**
 * Random specs from the schemas themselves: every field, within its bounds and a little beyond. A new field is covered as soon
 * as it is in the schema.
 */
import fc, { type Arbitrary } from 'fast-check';
import { EtcdClusterSpecSchema } from '../../../src/api/etcd-cluster.ts';
import type { Schema } from '../../../tools/gen/api-reference.ts';

export const clusterSpecSchema = JSON.parse(JSON.stringify(EtcdClusterSpecSchema)) as Schema;
/** A PriorityClass that the tests create. */
export const PRIORITY = 'etcd';

const ODD_TEXT = [
  '',
  ' ',
  'a b',
  '-',
  '..',
  '../x',
  '/etc',
  'ä',
  'A',
  '{{',
  '$(x)',
  '0',
  'a'.repeat(300),
  'x/y/z',
  '\u0000',
];
const ODD_NUMBERS = [0, -1, 1, 2_147_483_647, 2_147_483_648, 9_007_199_254_740_991, -9_007_199_254_740_991];
const QUANTITIES = ['1Gi', '2Gi', '256Mi', 1, 1073741824, '100m', '1.5', '1e3', '0.5Gi', '10Gi'];
const ODD_QUANTITIES = ['0', '-1', '', 'x', '1e99', '99999999999999999999', '1Zi', 0];
const KEYS = ['a', 'b', 'example.com/c', 'kubernetes.io/hostname', 'cpu', 'memory', 'vendor.com/d'];
const ODD_KEYS = ['', 'a b', 'a/b/c', 'Ä', '-a', 'a'.repeat(64), 'kubernetes.io/x', 'hugepages-2Mi'];

/** Values of our own for fields that chance alone would never get right. The key is the end of the path. */
export type Hints = Readonly<Record<string, Arbitrary<unknown>>>;

/** Fields that have to match each other or the cluster: random values would hardly ever be valid. */
export const hints = {
  '.version': fc.constantFrom('3.5.35', '3.6.16', '3.7.3'),
  '.priorityClassName': fc.constant(PRIORITY),
  '.storage.size': fc.constantFrom('1Gi', '10Gi', 2147483648),
  '.claims': fc.constant([]),
  '.quotaBackendBytes': fc.constantFrom(0, 104857600, 1073741824),
  '.electionTimeoutMilliseconds': fc.constantFrom(1000, 5000, 50000),
  '.heartbeatIntervalMilliseconds': fc.constantFrom(10, 100, 200),
  '.extraArgs[]': fc.constantFrom('--max-txn-ops=256', '--pre-vote', '--metrics=extensive'),
  '.annotations': fc.constantFrom(
    { note: 'any text' },
    { 'kubernetes.io/config.mirror': 'x', 'volume.kubernetes.io/selected-node': 'n' },
    { 'seccomp.security.alpha.kubernetes.io/pod': 'unconfined' },
    { 'container.apparmor.security.beta.kubernetes.io/other': 'unconfined' },
  ),
  '.operator': fc.constantFrom('Exists', 'DoesNotExist'),
  '.values': fc.constant([]),
  '.requests': fc.constantFrom({}, { cpu: '100m' }, { cpu: 1, memory: '1Gi' }),
  '.limits': fc.constantFrom({}, { cpu: '2' }, { cpu: 2, memory: '1Gi', 'vendor.com/x': 1 }),
  '.bootstrap': fc.constant({}),
  '.tls': fc.constant({ peer: { secretRef: { name: 'peer' } } }),
  '.auth': fc.constantFrom({}, { enabled: false }),
};
/** `odd` is how often a leaf goes beyond its bounds. */
export function valueOf(schema: Schema, hints: Hints, odd: number, path = ''): Arbitrary<unknown> {
  const hint = Object.entries(hints).find(([end]) => path.endsWith(end))?.[1];
  const within = hint ?? shaped(schema, hints, odd, path);
  return odd === 0 || schema.properties ? within : maybe(odd, within, beyond(schema));
}

const maybe = (odd: number, within: Arbitrary<unknown>, beyondIt: Arbitrary<unknown>): Arbitrary<unknown> =>
  fc.oneof(
    { arbitrary: within, weight: Math.round((1 - odd) * 100) },
    { arbitrary: beyondIt, weight: Math.round(odd * 100) },
  );

function shaped(schema: Schema, hints: Hints, odd: number, path: string): Arbitrary<unknown> {
  if (schema['x-kubernetes-int-or-string']) return fc.constantFrom(...QUANTITIES);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  switch (schema.type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1_000_000, 2_147_483_647) });
    case 'array':
      return fc.array(valueOf(schema.items ?? {}, hints, odd, `${path}[]`), {
        minLength: schema.minItems ?? 0,
        maxLength: 3,
      });
    case 'object':
      return schema.properties ? objectOf(schema, hints, odd, path) : mapOf(schema, hints, odd, path);
    case undefined:
    default:
      return textOf(schema);
  }
}

function objectOf(schema: Schema, hints: Hints, odd: number, path: string): Arbitrary<unknown> {
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, field]) => [name, valueOf(field, hints, odd, `${path}.${name}`)] as const,
  );
  const optional = fields.map(([name]) => name).filter((name) => odd > 0 || !schema.required?.includes(name));
  const required = fields.map(([name]) => name).filter((name) => !optional.includes(name));
  return fc
    .subarray(optional)
    .chain((chosen) =>
      fc.record(Object.fromEntries(fields.filter(([name]) => chosen.includes(name) || required.includes(name)))),
    );
}

const mapOf = (schema: Schema, hints: Hints, odd: number, path: string): Arbitrary<unknown> => {
  const key = maybe(odd, fc.constantFrom(...KEYS), fc.constantFrom(...ODD_KEYS)) as Arbitrary<string>;
  return fc.dictionary(key, valueOf(schema.additionalProperties ?? {}, hints, odd, `${path}.*`), { maxKeys: 3 });
};

function textOf(schema: Schema): Arbitrary<unknown> {
  const { pattern, minLength = 0, maxLength = 1_000 } = schema;
  if (pattern === undefined) return fc.constantFrom('a', 'name', 'x-1').filter((s) => s.length >= minLength);
  return fc.stringMatching(new RegExp(pattern)).filter((s) => s.length >= minLength && s.length <= maxLength);
}

function beyond(schema: Schema): Arbitrary<unknown> {
  if (schema['x-kubernetes-int-or-string']) return fc.constantFrom(...ODD_QUANTITIES);
  switch (schema.type) {
    case 'boolean':
      return fc.constantFrom('true', 0);
    case 'integer':
      return fc.constantFrom(...ODD_NUMBERS, (schema.minimum ?? 0) - 1, (schema.maximum ?? 0) + 1);
    case 'array':
      return fc.constantFrom([], {}, [null]);
    case 'object':
      return fc.constantFrom({}, [], 'x');
    case undefined:
    default:
      return fc.constantFrom<unknown>(...ODD_TEXT, 5);
  }
}
