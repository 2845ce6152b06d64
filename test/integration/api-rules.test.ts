/** What the API server accepts and refuses, and in which words: every rule, once each way. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { CelRule } from '../../src/api/cel.ts';
import { kinds as allKinds } from '../../src/api/crds.ts';
import {
  API_VERSION,
  etcdClusters,
  etcdDefragPolicies,
  etcdDefrags,
  etcdMembers,
  etcdSnapshots,
} from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { root } from '../../tools/paths.ts';
import { type Api, refusalOf, startApi, type Written, written } from '../support/api-server.ts';
import * as cluster from './api/cluster-rows.ts';
import { largest } from './api/largest.ts';
import * as option from './api/option-rows.ts';
import * as other from './api/other-rows.ts';
import * as placement from './api/placement-rows.ts';
import * as pod from './api/pod-rows.ts';
import type { EditRow, Row } from './api/row.ts';
import * as versions from './api/version-rows.ts';

let api: Api;
let namespace: string;
beforeAll(async () => {
  api = await startApi();
  namespace = await api.namespace();
});
afterAll(async () => {
  await api?.stop();
});

const kinds = {
  clusters: etcdClusters as Resource<Written>,
  members: etcdMembers as Resource<Written>,
  snapshots: etcdSnapshots as Resource<Written>,
  defrags: etcdDefrags as Resource<Written>,
  policies: etcdDefragPolicies as Resource<Written>,
};

let rows = 0;
/** Everything that the API server has said in this run, each with the kind that it names. */
const heard: string[] = [];
function expectAnswer(said: string | undefined, expected: string | undefined): void {
  if (said !== undefined) heard.push(said);
  if (expected === undefined) expect(said).toBeUndefined();
  else expect(said ?? 'accepted').toContain(expected);
}

const creates = (kind: keyof typeof kinds, table: readonly Row[], always: object = {}): void =>
  test.concurrent.each(table.map((row) => [...row] as [string, object, string?]))(
    '%s',
    async (_what, spec, refused) => {
      const object = written(kinds[kind], namespace, `row-${++rows}`, { ...always, ...spec });
      expectAnswer(await refusalOf(api.create(kinds[kind], object, true)), refused);
    },
  );

const edits = (kind: keyof typeof kinds, table: readonly EditRow[], always: object = {}): void =>
  test.concurrent.each(table.map((row) => [...row] as [string, object, object, string?, object?]))(
    '%s',
    async (_what, before, after, refused, status) => {
      const object = written(kinds[kind], namespace, `row-${++rows}`, { ...always, ...before });
      let made = await api.create(kinds[kind], object);
      if (status) made = await api.replaceStatus(kinds[kind], { ...made, status: { ...status } });
      const edited = { ...made, spec: { ...always, ...after } };
      expectAnswer(await refusalOf(api.replace(kinds[kind], edited, true)), refused);
    },
  );

const version = { version: '3.6.16' };

describe('the documents', () => {
  const folder = join(root, 'docs', 'examples');
  test.each(allKinds.map(({ names }) => names))(
    'have an example of $kind that is accepted as it stands',
    async (names) => {
      const example = parse(await readFile(join(folder, `${names.singular}.yaml`), 'utf8')) as Written;
      expect(example.kind).toBe(names.kind);
      const resource = Object.values(kinds).find(({ kind }) => kind === names.kind) as Resource<Written>;
      const object = { ...example, metadata: { ...example.metadata, namespace } };
      const made = await api.create(resource, object, true);
      expect(made.spec).toMatchObject(example.spec);
    },
  );
  test('have no example of anything else', async () => {
    expect((await readdir(folder)).sort()).toEqual(allKinds.map(({ names }) => `${names.singular}.yaml`).sort());
  });
});

test('"kubectl get etcd" lists every kind, and each has a short name', async () => {
  const path = `/apis/${API_VERSION}`;
  const { resources } = await api.admin.transport.json<{ resources: Record<string, unknown>[] }>(path);
  const listed = resources.filter(({ name }) => !String(name).includes('/'));
  expect(new Set(listed.map(({ kind }) => kind))).toEqual(new Set(allKinds.map(({ names }) => names.kind)));
  for (const kind of listed) expect(kind).toMatchObject({ categories: ['etcd'], shortNames: [expect.any(String)] });
});

describe('the largest object that fits', () => {
  test('costs no more than the API server allows, when it is made and when it is edited', async () => {
    const object = written(kinds.clusters, namespace, 'largest', { ...version, ...largest });
    expect(JSON.stringify(object).length).toBeGreaterThan(600_000);
    const made = await api.create(kinds.clusters, object);
    const edited = await api.replace(kinds.clusters, { ...made, spec: { ...made.spec, replicas: 5 } });
    const spec = { ...edited.spec, version: '3.6.17', options: { ...largest.options, snapshotCount: 9 } };
    await api.replace(kinds.clusters, { ...edited, spec });
  });
});

describe('the name of a cluster', () => {
  test.concurrent.each(cluster.names.map((row) => [...row] as [string, string, string?]))(
    '%s',
    async (_what, name, refused) => {
      const object = written(kinds.clusters, namespace, name, version);
      expectAnswer(await refusalOf(api.create(kinds.clusters, object, true)), refused);
    },
  );
});
describe('the name of other kinds', () => {
  const destination = { pvc: { claimName: 'c' } };
  test.concurrent.each<[string, keyof typeof kinds, string, object, string?]>([
    ['a snapshot', 'snapshots', 'a'.repeat(54), { destination }],
    ['a snapshot whose Job would have no name', 'snapshots', 'a'.repeat(55), { destination }, 'at most 54 characters'],
    ['a snapshot with a dot', 'snapshots', 'a.b', { destination }],
    ['a policy', 'policies', 'a'.repeat(63), { schedule: '0 3 * * *' }],
    ['a policy with a dot', 'policies', 'a.b', { schedule: '0 3 * * *' }],
    ['a policy that could not be a label', 'policies', 'a'.repeat(64), { schedule: '0 3 * * *' }, 'at most 63'],
  ])('%s', async (_what, kind, name, spec, refused) => {
    const object = written(kinds[kind], namespace, name, { clusterRef: { name: 'db' }, ...spec });
    expectAnswer(await refusalOf(api.create(kinds[kind], object, true)), refused);
  });
});
describe('an EtcdCluster', () => creates('clusters', cluster.specs, version));
describe('an EtcdCluster, as far as it becomes Pods', () => creates('clusters', pod.specs, version));
describe('an EtcdCluster, as far as it is about nodes', () => creates('clusters', placement.specs, version));
describe('where an EtcdCluster is restored from', () => creates('clusters', other.sources, version));
describe('the options of etcd', () => creates('clusters', option.specs, version));
describe('an edit of an EtcdCluster', () => edits('clusters', cluster.edits, version));
describe('an edit of the version', () => edits('clusters', versions.edits, version));
describe('an edit of what becomes Pods', () => edits('clusters', [...pod.edits, ...placement.edits], version));
describe('an EtcdMember', () => creates('members', other.members));
describe('an EtcdSnapshot', () => creates('snapshots', other.snapshots));
describe('an edit of an EtcdSnapshot', () => edits('snapshots', other.snapshotEdits));
describe('an EtcdDefrag', () => creates('defrags', other.defrags));
describe('an edit of an EtcdDefrag', () => edits('defrags', other.defragEdits));
describe('an EtcdDefragPolicy', () => creates('policies', other.policies));
describe('an edit of an EtcdDefragPolicy', () => edits('policies', other.policyEdits));

/** The rules of a schema and of all that is in it. */
function rulesIn(schema: unknown): readonly CelRule[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const own =
    (schema as { readonly 'x-kubernetes-validations'?: readonly CelRule[] })['x-kubernetes-validations'] ?? [];
  return [...own, ...Object.values(schema).flatMap(rulesIn)];
}

/** What a rule's sentence has in it whatever the values are. */
function constants({ message, messageExpression }: CelRule): readonly string[] {
  if (messageExpression === undefined) return [message];
  const [always = ''] = messageExpression.split(' ? ');
  const literals = always.replace(/\{[^}]*\}/g, '').match(/'[^']*'/g) ?? [];
  const parts = literals.flatMap((literal) => literal.slice(1, -1).split(/%[ds]/));
  return parts.filter((part) => part.length > 10 && !part.includes('^'));
}

test('no rule is without a row that it refuses', () => {
  const all = allKinds.flatMap((kind) =>
    [...(kind.rules ?? []), ...rulesIn(kind.spec)].map((rule) => [kind.names.kind, rule] as const),
  );
  expect(rows).toBeGreaterThanOrEqual(150);
  expect(all.length).toBeGreaterThan(80);
  const unheard = all.filter(([kind, rule]) => {
    const parts = [`${kind}.etcd-operator`, ...constants(rule)];
    return !heard.some((said) => parts.every((part) => said.includes(part)));
  });
  expect(unheard.map(([kind, rule]) => `${kind}: ${rule.message}`)).toEqual([]);
});
