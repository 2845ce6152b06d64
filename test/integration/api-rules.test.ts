/** What the API server accepts and refuses, and with which message: every rule at every place where it applies, each way. */
import { readFile } from 'node:fs/promises';
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
  etcdSnapshotSchedules,
  etcdSnapshots,
} from '../../src/api/names.ts';
import type { Resource } from '../../src/kube/object.ts';
import { root } from '../../tools/paths.ts';
import { type Api, refusalOf, startApi, type Written, written } from '../support/servers/api-server.ts';
import * as backup from './api/backup-rows.ts';
import { type Bound, boundsAt, brokenAt } from './api/bounds.ts';
import * as cluster from './api/cluster-rows.ts';
import { largest } from './api/largest.ts';
import * as option from './api/option-rows.ts';
import * as other from './api/other-rows.ts';
import * as placement from './api/placement-rows.ts';
import { type Cause, causesIn, isAt, nameOf, occurrences, type Place, placesOf } from './api/places.ts';
import * as pod from './api/pod-rows.ts';
import type { EditRow, Row } from './api/row.ts';
import * as selector from './api/selector-rows.ts';
import * as tls from './api/tls-rows.ts';
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
  schedules: etcdSnapshotSchedules as Resource<Written>,
  defrags: etcdDefrags as Resource<Written>,
  policies: etcdDefragPolicies as Resource<Written>,
};

let rows = 0;
/** An object that was written in this run, and the causes for which the API server refused it. */
interface Asked {
  readonly kind: string;
  readonly before?: object;
  readonly after: object;
  /** Absent when it is accepted. */
  readonly causes: readonly Cause[] | undefined;
}
const answers: Asked[] = [];
function expectAnswer(asked: Omit<Asked, 'causes'>, refusal: string | undefined, expected: string | undefined): void {
  answers.push({ ...asked, causes: refusal === undefined ? undefined : causesIn(refusal) });
  if (expected === undefined) expect(refusal).toBeUndefined();
  else expect(refusal ?? 'accepted').toContain(expected);
}

async function expectCreated(resource: Resource<Written>, object: Written, refused: string | undefined): Promise<void> {
  const refusal = await refusalOf(api.create(resource, object, true));
  expectAnswer({ kind: resource.kind, after: object }, refusal, refused);
}

/** All specs of the tables by kind, the accepted ones first: the base for tests of bounds. */
const specs = new Map<string, readonly object[]>();

function creates(kind: keyof typeof kinds, table: readonly Row[], always: object = {}): void {
  const all = [...table].sort(([, , a], [, , b]) => Number(a !== undefined) - Number(b !== undefined));
  const known = specs.get(kinds[kind].kind) ?? [];
  specs.set(kinds[kind].kind, [...known, ...all.map(([, spec]) => ({ spec: { ...always, ...spec } }))]);
  test.concurrent.each(table.map((row) => [...row] as [string, object, string?]))('%s', async (_what, spec, refused) =>
    expectCreated(kinds[kind], written(kinds[kind], namespace, `row-${++rows}`, { ...always, ...spec }), refused),
  );
}

const edits = (kind: keyof typeof kinds, table: readonly EditRow[], always: object = {}): void =>
  test.concurrent.each(table.map((row) => [...row] as [string, object, object, string?, object?]))(
    '%s',
    async (_what, before, after, refused, status) => {
      const resource = kinds[kind];
      let made = await api.create(resource, written(resource, namespace, `row-${++rows}`, { ...always, ...before }));
      if (status) made = await api.replaceStatus(resource, { ...made, status: { ...status } });
      const edited = { ...made, spec: { ...always, ...after } };
      const refusal = await refusalOf(api.replace(resource, edited, true));
      expectAnswer({ kind: resource.kind, before: made, after: edited }, refusal, refused);
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
});

test('"kubectl get etcd" lists every kind, and each has a short name', async () => {
  const path = `/apis/${API_VERSION}`;
  const { resources } = await api.admin.transport.json<{ resources: Record<string, unknown>[] }>(path);
  const listed = resources.filter(({ name }) => !String(name).includes('/'));
  expect(new Set(listed.map(({ kind }) => kind))).toEqual(new Set(allKinds.map(({ names }) => names.kind)));
  for (const kind of listed) expect(kind).toMatchObject({ categories: ['etcd'], shortNames: [expect.any(String)] });
});

describe('the largest object that fits', () => {
  test('costs no more than the API server allows, on creation and on update', async () => {
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
      await expectCreated(kinds.clusters, written(kinds.clusters, namespace, name, version), refused);
    },
  );
});
describe('the name of other kinds', () => {
  const destination = { pvc: { claimName: 'c' } };
  test.concurrent.each<[string, keyof typeof kinds, string, object, string?]>([
    ['a snapshot', 'snapshots', 'a'.repeat(54), { destination }],
    ['a snapshot whose Job would have no name', 'snapshots', 'a'.repeat(55), { destination }, 'at most 54 characters'],
    ['a snapshot with a dot', 'snapshots', 'a.b', { destination }],
    ['a schedule', 'schedules', 'a'.repeat(41), { destination, schedule: '@daily' }],
    [
      'a schedule whose snapshots would have no name',
      'schedules',
      'a'.repeat(42),
      { destination, schedule: '@daily' },
      'at most 41',
    ],
    ['a policy', 'policies', 'a'.repeat(63), { schedule: '0 3 * * *' }],
    ['a policy with a dot', 'policies', 'a.b', { schedule: '0 3 * * *' }],
    ['a policy that could not be a label', 'policies', 'a'.repeat(64), { schedule: '0 3 * * *' }, 'at most 63'],
  ])('%s', async (_what, kind, name, spec, refused) => {
    const object = written(kinds[kind], namespace, name, { clusterRef: { name: 'db' }, ...spec });
    await expectCreated(kinds[kind], object, refused);
  });
});
describe('an EtcdCluster, TLS fields', () => creates('clusters', tls.specs, version));
describe('an EtcdCluster', () => creates('clusters', cluster.specs, version));
describe('an EtcdCluster, fields of Pods', () => creates('clusters', pod.specs, version));
describe('an EtcdCluster, fields about nodes', () => creates('clusters', placement.specs, version));
describe('an EtcdCluster, selectors of Pods and nodes', () => creates('clusters', selector.specs, version));
describe('the source of a restore', () => creates('clusters', [...other.sources, ...backup.sources], version));
describe('the options of etcd', () => creates('clusters', option.specs, version));
describe('an edit of an EtcdCluster', () => edits('clusters', cluster.edits, version));
describe('an edit of the version', () => edits('clusters', versions.edits, version));
describe('an edit of the fields of Pods', () => edits('clusters', [...pod.edits, ...placement.edits], version));
describe('an EtcdMember', () => creates('members', other.members));
describe('an EtcdSnapshot', () => creates('snapshots', [...other.snapshots, ...backup.snapshots]));
describe('an EtcdSnapshotSchedule', () => creates('schedules', backup.schedules));
describe('an edit of an EtcdSnapshotSchedule', () => edits('schedules', backup.scheduleEdits));
describe('an edit of an EtcdSnapshot', () => edits('snapshots', other.snapshotEdits));
describe('an EtcdDefrag', () => creates('defrags', other.defrags));
describe('an edit of an EtcdDefrag', () => edits('defrags', other.defragEdits));
describe('an EtcdDefragPolicy', () => creates('policies', other.policies));
describe('an edit of an EtcdDefragPolicy', () => edits('policies', other.policyEdits));

const places: readonly (Place & { readonly kind: string })[] = allKinds.flatMap((kind) =>
  placesOf(kind).map((place) => ({ ...place, kind: kind.names.kind })),
);

describe('a value beyond each bound, pattern, enum and required field is refused at its path', () => {
  const bounds = places.flatMap((place) => boundsAt(place).map((bound) => [place.kind, bound] as const));
  test.concurrent.each(bounds.map(([kind, bound]) => [kind, nameOf(bound.path), bound.keyword, bound] as const))(
    '%s %s: %s',
    async (kind, name, _keyword, bound: Bound) => {
      const resource = Object.values(kinds).find((one) => one.kind === kind) as Resource<Written>;
      const broken = brokenAt(specs.get(kind) ?? [], bound);
      if (!broken) throw new Error(`no row has ${name}`);
      const object = { ...written(resource, namespace, 'beyond', {}), ...broken.object };
      const causes = causesIn((await refusalOf(api.create(resource, object, true))) ?? 'accepted');
      const texts = causes.filter(({ field }) => field === broken.field).map(({ text }) => text);
      expect(texts.join()).toContain(bound.says);
    },
  );
});

/** The constant parts of a rule's message. */
function constants({ message, messageExpression }: CelRule): readonly string[] {
  if (messageExpression === undefined) return [message];
  const [always = ''] = messageExpression.split(' ? ');
  const literals = always.replace(/\{[^}]*\}/g, '').match(/'[^']*'/g) ?? [];
  const parts = literals.flatMap((literal) => literal.slice(1, -1).split(/%[ds]/));
  return parts.filter((part) => part.length > 10 && !part.includes('^'));
}

/** A rule that always compares with the old object is about updates; any other is at least about creation. */
const isAboutEdits = ({ rule, optionalOldSelf }: CelRule): boolean => rule.includes('oldSelf') && !optionalOldSelf;

describe('no rule', () => {
  const rules = places.flatMap(({ kind, path, schema }) =>
    (schema['x-kubernetes-validations'] ?? []).map((rule) => {
      const where = [...path, ...(rule.fieldPath?.slice(1).split('.') ?? [])];
      return { kind, rule, where, called: `${kind} ${nameOf(where)}: ${rule.message}` };
    }),
  );
  type Standing = (typeof rules)[number];
  const without = (isRow: (standing: Standing, answer: Asked) => boolean | undefined): readonly string[] =>
    rules
      .filter((standing) => {
        const edited = isAboutEdits(standing.rule);
        const asked = answers.filter((a) => a.kind === standing.kind && (a.before !== undefined) === edited);
        return !asked.some((answer) => isRow(standing, answer));
      })
      .map(({ called }) => called);

  test('is without a row that it refuses, at each of its places and with its own message', () => {
    expect(rows).toBeGreaterThanOrEqual(150);
    expect(rules.length).toBeGreaterThan(120);
    expect(rules.filter(({ rule }) => constants(rule).length === 0)).toEqual([]);
    const unheard = without(({ rule, where }, { causes }) =>
      causes?.some(({ field, text }) => isAt(field, where) && constants(rule).every((part) => text.includes(part))),
    );
    expect(unheard).toEqual([]);
  });

  test('is without a row that has the field, and is accepted', () => {
    const has = (object: object | undefined, { where }: Standing): boolean => occurrences(object, where).length > 0;
    const untried = without(
      (standing, { before, after, causes }) =>
        causes === undefined && has(after, standing) && (before === undefined || has(before, standing)),
    );
    expect(untried).toEqual([]);
  });
});
