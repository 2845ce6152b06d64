import { expect, test } from 'vitest';
import { aCluster, aMember, condition, FORMED } from '../../../test/support/builders/builders.ts';
import { up, world } from '../../../test/support/builders/members.ts';
import type { EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import { findCondition } from '../../domain/conditions.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';
import { quotaConditions, unapplied } from './spec-drift.ts';

const left = (has: Partial<EtcdClusterSpec>, asked: Partial<EtcdClusterSpec>): readonly string[] => {
  const { resources, additionalMetadata, affinity } = has;
  const object = aMember({
    spec: {
      ...(resources && { resources }),
      ...(additionalMetadata && { additionalMetadata }),
      ...(affinity && { affinity }),
    },
  });
  const members = [{ object, pod: { is: 'absent' } as const }];
  const o: Partial<Gathered> = { cluster: aCluster({ status: FORMED, spec: asked }), members };
  return unapplied(o as Gathered).map((text) => text.split(' ')[0] ?? '');
};
const terms = (term: object) => ({
  affinity: {
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone', ...term }] },
  },
});
const memory = (amount: string | number) => ({ resources: { limits: { memory: amount } } });

test.each<[string, Partial<EtcdClusterSpec>, Partial<EtcdClusterSpec>, readonly string[]]>([
  ['the same', memory('1Gi'), memory('1Gi'), []],
  ['the same quantity in another unit', memory('1024Mi'), memory('1Gi'), []],
  ['the same as a number', memory(1073741824), memory('1Gi'), []],
  ['nothing and an empty object', {}, { resources: {} }, []],
  ['more', memory('1Gi'), memory('2Gi'), ['resources']],
  [
    'a limit that is not wanted any more',
    { resources: { limits: { memory: '1Gi', cpu: '1' } } },
    memory('1Gi'),
    ['resources'],
  ],
  [
    'another request',
    { resources: { requests: { memory: '1Gi' } } },
    { resources: { requests: { memory: '2Gi' } } },
    ['resources'],
  ],
  ['a claim', {}, { resources: { claims: [{ name: 'a' }] } }, ['resources']],
  ['something else', memory('1Gi'), { resources: { limits: { cpu: '1Gi' } } }, ['resources']],
  ['a request instead of a limit', memory('1Gi'), { resources: { requests: { memory: '1Gi' } } }, ['resources']],
  ['a label', {}, { additionalMetadata: { labels: { team: 'a' } } }, ['additionalMetadata']],
  ['an empty list', {}, { imagePullSecrets: [] }, []],
  ['an empty list that keeps a default away', {}, { topologySpreadConstraints: [] }, ['topologySpreadConstraints']],
  ['empty metadata', {}, { additionalMetadata: { labels: {}, annotations: {} } }, []],
  ['an empty object', {}, { options: {}, affinity: {} }, []],
  ['an empty list in an affinity', terms({}), terms({ namespaces: [], matchLabelKeys: [] }), []],
  [
    'empty lists and maps of a selector',
    terms({ labelSelector: {} }),
    terms({ labelSelector: { matchLabels: {}, matchExpressions: [] } }),
    [],
  ],
  ['a selector of everything instead of none', terms({}), terms({ namespaceSelector: {} }), ['affinity']],
])('what members lack: %s', (_what, has, asked, expected) => {
  expect(left(has, asked)).toEqual(expected);
});

test('a cluster of the Go operator, which has no defaults, and an empty list of constraints', () => {
  const { defaults: _, ...status } = FORMED;
  const object = aMember();
  const { spread: __, ...spec } = object.spec;
  const o = {
    cluster: aCluster({ status, spec: { topologySpreadConstraints: [] } }),
    members: [{ object: { ...object, spec }, pod: { is: 'absent' } as const }],
  };
  expect(unapplied(o as unknown as Gathered).join()).not.toContain('topologySpreadConstraints');
});

test('a user reads what every member has, and what it should have', () => {
  const o = world([up, { spec: { version: '3.6.1', storage: { size: '7Gi', medium: '' } } }], {
    spec: { additionalMetadata: { labels: { team: 'a' } } },
  });
  const [first, second] = o.members.map((m) => m.object.metadata.name);
  const { size } = o.members[0]?.object.spec.storage ?? {};
  expect(unapplied(o)).toEqual([
    `version 3.6.16 (${second} has 3.6.1)`,
    `storage.size ${size} (${second} has 7Gi)`,
    `additionalMetadata (${first}, ${second})`,
  ]);
});

const GI = 1024 ** 3;
test.each<[string, Partial<EtcdClusterSpec>, boolean]>([
  ['above the volume', { storage: { size: '1Gi', medium: '' }, options: { quotaBackendBytes: GI + 1 } }, true],
  [
    'above a volume given as a number',
    { storage: { size: GI, medium: '' }, options: { quotaBackendBytes: GI + 1 } },
    true,
  ],
  ['above the memory', { storage: { size: '256Mi', medium: 'Memory' }, options: { quotaBackendBytes: GI } }, true],
  ['above the volume that is the default', { options: { quotaBackendBytes: 2 * GI } }, true],
  [
    'of exactly the volume',
    { storage: { size: '1.5Gi', medium: '' }, options: { quotaBackendBytes: 1.5 * GI } },
    false,
  ],
  ["of etcd's own", { storage: { size: '1Gi', medium: '' }, options: { quotaBackendBytes: 0 } }, false],
  ['that is not stated', { storage: { size: '1Gi', medium: '' } }, false],
  [
    'and a size that cannot be parsed',
    { storage: { size: '1e5000000', medium: '' }, options: { quotaBackendBytes: 9 } },
    false,
  ],
])('a quota %s: is it reported?', (_what, spec, reported) => {
  const o = { ...world([up]), cluster: aCluster({ status: FORMED, spec }) };
  const found = findCondition(decide(o).status.conditions, 'QuotaFitsVolume');
  expect(found && [found.status, found.reason]).toEqual(reported ? ['False', 'QuotaExceedsVolume'] : undefined);
  const [condition] = quotaConditions(o);
  if (reported)
    expect(condition?.message).toContain(
      `is ${spec.options?.quotaBackendBytes}, more than storage.size ${spec.storage?.size ?? '1Gi'}: `,
    );
});

test('a quota that fits again is not reported any more', () => {
  const conditions = [condition('QuotaFitsVolume', 'False', 'QuotaExceedsVolume')];
  const o = { ...world([up]), cluster: aCluster({ status: { ...FORMED, conditions } }) };
  expect(findCondition(decide(o).status.conditions, 'QuotaFitsVolume')).toBeUndefined();
});
