/** Our CRDs over those of the Go operator, with its objects in place: nothing is lost, and everything can still be edited. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { crds } from '../../src/api/crds.ts';
import {
  etcdClusters,
  etcdDefragPolicies,
  etcdDefrags,
  etcdMembers,
  etcdSnapshots,
  GROUP,
  VERSION,
} from '../../src/api/names.ts';
import { outdatedCRDs } from '../../src/bin/outdated-crds.ts';
import type { Resource } from '../../src/kube/object.ts';
import { baselineCrds } from '../support/builders/baseline-crds.ts';
import { type Api, refusalOf, startApi, type Written, written } from '../support/servers/api-server.ts';
import { eventually } from '../support/servers/processes.ts';
import type { BaselineObject } from './api/baseline-clusters.ts';
import { baselineObjects } from './api/baseline-objects.ts';

let api: Api;
let outdated: readonly string[];
const published = async (): Promise<readonly string[]> =>
  outdatedCRDs(await api.admin.transport.json(`/openapi/v3/apis/${GROUP}/${VERSION}`));
let namespace: string;
const before = new Map<BaselineObject, Written>();

const withoutBookkeeping = ({ metadata, ...rest }: Written): object => {
  const { managedFields: _, resourceVersion: _v, generation: _g, ...kept } = metadata;
  return { ...rest, metadata: kept };
};

async function install(): Promise<void> {
  for (const crd of crds) {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}`;
    const query = { fieldManager: 'helm', force: 'true' };
    await api.admin.transport.json(path, {
      method: 'PATCH',
      body: crd,
      query,
      contentType: 'application/apply-patch+yaml',
    });
  }
  // The API server serves the new CRDs when each kind responds as only they do.
  const clusterRef = { name: '' };
  const probes: readonly [Resource<Written>, object, boolean][] = [
    [etcdClusters, { version: '3.6.16', spread: 'None' }, true],
    [
      etcdMembers,
      {
        clusterName: 'c',
        version: '3.6.16',
        storage: { size: 1, medium: '' },
        initialCluster: '',
        clusterToken: '',
        extraArgs: [],
      },
      true,
    ],
    [etcdSnapshots, { clusterRef, destination: { pvc: { claimName: 'c' } } }, false],
    [etcdDefrags, { clusterRef }, false],
    [etcdDefragPolicies, { clusterRef, schedule: 'x' }, false],
  ];
  for (const [resource, spec, accepted] of probes)
    await eventually(`the new definition of ${resource.kind}`, async () => {
      const refusal = await refusalOf(api.create(resource, written(resource, namespace, 'probe', spec), true));
      return (refusal === undefined) === accepted ? true : undefined;
    });
}

beforeAll(async () => {
  api = await startApi(baselineCrds);
  namespace = await api.namespace();
  for (const object of baselineObjects) {
    let made = await api.create(object.resource, written(object.resource, namespace, object.name, object.spec));
    if (object.status) made = await api.replaceStatus(object.resource, { ...made, status: { ...object.status } });
    before.set(object, made);
  }
  outdated = await published();
  await install();
});
afterAll(async () => {
  await api?.stop();
});

test('an operator names the CRDs of the Go operator as older, and none of its own', async () => {
  const named = new Set(outdated.map((sentence) => / (etcd\w+)\./.exec(sentence)?.[1]));
  const older = ['etcdclusters', 'etcddefragpolicies', 'etcddefrags', 'etcdmembers', 'etcdsnapshots'];
  expect(named).toEqual(new Set(older));
  expect(outdated.join()).toContain('etcdclusters.etcd-operator.cozystack.io is older than this operator: it lacks');
  const none = async () => ((await published()).length === 0 ? true : undefined);
  await eventually('the new schemas to be published', none, { seen: published });
});

const get = async ({ resource, name }: BaselineObject): Promise<Written> => {
  const found = await api.admin.get(resource, { namespace, name });
  if (!found) throw new Error(`${resource.kind} ${name} is deleted`);
  return found;
};

describe.each(baselineObjects.map((o) => [`${o.resource.kind} ${o.what}`, o] as const))('%s', (_name, object) => {
  test('reads unchanged', async () => {
    expect(withoutBookkeeping(await get(object))).toEqual(withoutBookkeeping(before.get(object) as Written));
  });

  test('accepts a label, an edit of another spec field and a status, and keeps the rest', async () => {
    const labelled = await get(object);
    const metadata = { ...labelled.metadata, labels: { edited: 'yes' } };
    const first = await api.replace(object.resource, { ...labelled, metadata });
    const second = await api.replace(object.resource, { ...first, spec: { ...first.spec, ...object.edit } });
    expect(second.spec).toEqual({ ...labelled.spec, ...object.edit });
    const third = await api.replaceStatus(object.resource, {
      ...second,
      status: {
        ...second.status,
        conditions: [
          { type: 'New', status: 'True', reason: 'R', message: '', lastTransitionTime: '2026-01-02T00:00:00Z' },
        ],
      },
    });
    expect(third.spec).toEqual(second.spec);
    expect({ ...third.status, conditions: [] }).toEqual({ ...second.status, conditions: [] });
  });
});

test.each(baselineObjects.flatMap((o) => (o.siblings ?? []).map((edit) => [o.what, JSON.stringify(edit), o] as const)))(
  'an object %s accepts the edit %.80s next to its invalid field',
  async (_what, edit, object) => {
    const now = await get(object);
    const spec = { ...now.spec, ...(JSON.parse(edit) as object) };
    expect(await refusalOf(api.replace(object.resource, { ...now, spec }, true))).toBeUndefined();
  },
);

test.each(
  baselineObjects.flatMap((o) => (o.worse ?? []).map(([edit, refused]) => [o.what, refused, o, edit] as const)),
)('an object %s does not become worse: %s', async (_what, refused, object, edit) => {
  const now = await get(object);
  const refusal = await refusalOf(api.replace(object.resource, { ...now, spec: { ...now.spec, ...edit } }, true));
  expect(refusal ?? 'accepted').toContain(refused);
});

test('conditions can be applied one by one, over a list that was written as a whole', async () => {
  const target = baselineObjects.find((o) => o.name === 'most') as BaselineObject;
  const now = await get(target);
  const path = `/apis/etcd-operator.cozystack.io/v1alpha2/namespaces/${namespace}/etcdclusters/most/status`;
  const mine = { type: 'Mine', status: 'True', reason: 'R', message: '', lastTransitionTime: '2026-01-02T00:00:00Z' };
  const body = {
    apiVersion: now.apiVersion,
    kind: now.kind,
    metadata: { name: 'most' },
    status: { conditions: [mine] },
  };
  const query = { fieldManager: 'another-manager' };
  const applied = await api.admin.transport.json<Written>(path, {
    method: 'PATCH',
    body,
    query,
    contentType: 'application/apply-patch+yaml',
  });
  const conditions = (applied.status?.['conditions'] ?? []) as readonly { type: string }[];
  const types = conditions.map((c) => c.type);
  expect(types).toContain('Mine');
  expect(types.length).toBeGreaterThan(1);
});
