/** What the operator relies on in an API server, on a real one and on the model that simulations use. */
import { describe, expect, test } from 'vitest';
import { listAll } from '../../src/kube/client.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { eventually } from '../support/servers/processes.ts';
import { type ConfigMap, configMaps, kitIn, members, uidOf, versionOf } from './kube-kit.ts';
import { modelWorld, realWorld, refusal } from './kube-world.ts';

const status = (code: number, reason: string) => expect.objectContaining({ code, reason });

describe.each([
  ['the model', modelWorld],
  ['a real API server', realWorld],
])('%s', (_server, start) => {
  const kit = kitIn(start);
  const { aName, aConfigMap, aMember, ref } = kit;

  describe('names', () => {
    test('a created object has a uid of its own, and a missing object is undefined', async () => {
      const name = aName();
      expect(await kit.client.get(configMaps, ref(name))).toBeUndefined();
      const made = await aConfigMap(name);
      expect(made).toMatchObject({ kind: 'ConfigMap', metadata: { name, namespace: kit.namespace }, data: { a: '1' } });
      expect(uidOf(made).length).toBe(36);
      expect(await kit.client.get(configMaps, ref(name))).toMatchObject({ metadata: { uid: uidOf(made) } });
    });

    test('a name can be used only once', async () => {
      const name = aName();
      await aConfigMap(name);
      expect(await refusal(aConfigMap(name))).toEqual(status(409, 'AlreadyExists'));
    });

    test('a generated name has the given prefix, and is different each time', async () => {
      const make = () =>
        kit.client.create(configMaps, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { generateName: 'g-', namespace: kit.namespace },
        });
      const [one, other] = [await make(), await make()];
      expect(one.metadata.name).toMatch(/^g-[a-z0-9]{5}$/);
      expect(one.metadata.name).not.toBe(other.metadata.name);
    });

    test.each(['Upper', 'a_b', '-a', 'a-'])('%j is not a valid name', async (name) => {
      expect(await refusal(aConfigMap(name))).toEqual(status(422, 'Invalid'));
    });

    test('a create with a resourceVersion is refused', async () => {
      expect((await refusal(aConfigMap(aName(), { resourceVersion: '5' }))).serverMessage).toContain('resourceVersion');
    });
  });

  describe('writes', () => {
    test('a patch merges, and null removes', async () => {
      const made = await aConfigMap(aName(), { labels: { x: '1' } }, { a: '1', b: '2' });
      const after = await kit.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { a: null, c: '3' } });
      expect(after.data).toEqual({ b: '2', c: '3' });
      expect(after.metadata.labels).toEqual({ x: '1' });
      expect(versionOf(after)).not.toBe(versionOf(made));
    });

    test('a patch that changes nothing creates no new version', async () => {
      const made = await aConfigMap(aName());
      const after = await kit.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { a: '1' } });
      expect(versionOf(after)).toBe(versionOf(made));
    });

    test('a patch of a missing object is refused', async () => {
      expect(await refusal(kit.client.patch(configMaps, ref(aName()), { data: {} }))).toEqual(status(404, 'NotFound'));
    });

    test('a patch with another resourceVersion or uid is refused', async () => {
      const made = await aConfigMap(aName());
      const at = ref(made.metadata.name ?? '');
      await kit.client.patch(configMaps, at, { data: { b: '1' } });
      const stale = { metadata: { resourceVersion: versionOf(made) }, data: { b: '2' } };
      expect(await refusal(kit.client.patch(configMaps, at, stale))).toEqual(status(409, 'Conflict'));
      const foreign = { metadata: { uid: '11111111-0000-4000-8000-000000000000' }, data: { b: '2' } };
      expect(await refusal(kit.client.patch(configMaps, at, foreign))).toEqual(status(409, 'Conflict'));
      expect((await kit.client.get(configMaps, at))?.data).toEqual({ a: '1', b: '1' });
    });

    test('a deletion with another resourceVersion or uid is refused, a matching one is carried out, and a second one succeeds', async () => {
      const made = await aConfigMap(aName());
      const at = ref(made.metadata.name ?? '');
      const uid = uidOf(made);
      const other = { uid: '11111111-0000-4000-8000-000000000000' };
      expect(await refusal(kit.client.delete(configMaps, at, other))).toEqual(status(409, 'Conflict'));
      const stale = { uid, resourceVersion: '1' };
      expect(await refusal(kit.client.delete(configMaps, at, stale))).toEqual(status(409, 'Conflict'));
      expect(await kit.client.delete(configMaps, at, { uid, resourceVersion: versionOf(made) })).toBeUndefined();
      expect(await kit.client.get(configMaps, at)).toBeUndefined();
      expect(await kit.client.delete(configMaps, at, { uid })).toBeUndefined();
    });
  });

  test('a dry run is refused as the creation would be, and creates nothing', async () => {
    const name = aName();
    const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: ref('').namespace } };
    expect((await kit.client.dryRunCreate(configMaps, object)).metadata.name).toBe(name);
    expect(await kit.client.get(configMaps, ref(name))).toBeUndefined();
    const unnamed = { ...object, metadata: { namespace: ref('').namespace, generateName: `${name}-` } };
    expect((await kit.client.dryRunCreate(configMaps, unnamed)).metadata.name).toContain(`${name}-`);
    await aConfigMap(name);
    expect((await refusal(kit.client.dryRunCreate(configMaps, object))).code).toBe(409);
    const wrong = { ...object, metadata: { ...object.metadata, name: 'No Name' } };
    expect((await refusal(kit.client.dryRunCreate(configMaps, wrong))).code).toBe(422);
  });

  describe('finalizers', () => {
    test('keep an object until the last of them is removed; none can be added meanwhile', async () => {
      const made = await aMember(aName(), { finalizers: ['example.com/a', 'example.com/b'] });
      const at = ref(made.metadata.name ?? '');
      const left = await kit.client.delete(members, at, { uid: uidOf(made) });
      expect(left?.metadata.deletionTimestamp).toBeDefined();
      expect(versionOf(left ?? made)).not.toBe(versionOf(made));
      const finalizers = (names: readonly string[]) =>
        kit.client.patch(members, at, { metadata: { finalizers: names } });
      expect((await finalizers(['example.com/b'])).metadata.finalizers).toEqual(['example.com/b']);
      expect([403, 422]).toContain((await refusal(finalizers(['example.com/b', 'example.com/c']))).code);
      await finalizers([]);
      expect(await kit.client.get(members, at)).toBeUndefined();
    });

    test('a second deletion changes nothing', async () => {
      const made = await aMember(aName(), { finalizers: ['example.com/a'] });
      const at = ref(made.metadata.name ?? '');
      const first = await kit.client.delete(members, at, { uid: uidOf(made) });
      const second = await kit.client.delete(members, at, { uid: uidOf(made) });
      expect(second && versionOf(second)).toBe(first && versionOf(first));
    });
  });

  test('an object whose owner is deleted is collected, an object with another owner is not', async () => {
    const [owner, other] = [await aConfigMap(aName()), await aConfigMap(aName())];
    const owned = (by: ConfigMap) =>
      aConfigMap(aName(), {
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: by.metadata.name ?? '', uid: uidOf(by) }],
      });
    const [child, kept] = [await owned(owner), await owned(other)];
    await kit.client.delete(configMaps, ref(owner.metadata.name ?? ''), { uid: uidOf(owner) });
    await eventually('the garbage collection', async () => {
      await kit.world.collectGarbage();
      return (await kit.client.get(configMaps, ref(child.metadata.name ?? ''))) === undefined ? true : undefined;
    });
    expect(await kit.client.get(configMaps, ref(kept.metadata.name ?? ''))).toBeDefined();
  });

  test('of two owners the deleted one is removed, and a new object of its name is not the owner', async () => {
    const [owner, other] = [await aConfigMap(aName()), await aConfigMap(aName())];
    const by = ({ metadata }: ConfigMap) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: metadata.name ?? '',
      uid: metadata.uid ?? '',
    });
    const both = await aConfigMap(aName(), { ownerReferences: [by(owner), by(other)] });
    const one = await aConfigMap(aName(), { ownerReferences: [by(owner)] });
    await kit.client.delete(configMaps, ref(owner.metadata.name ?? ''), { uid: uidOf(owner) });
    await aConfigMap(owner.metadata.name ?? '');
    await eventually('the garbage collection', async () => {
      await kit.world.collectGarbage();
      const left = await kit.client.get(configMaps, ref(both.metadata.name ?? ''));
      const isDeleted = (await kit.client.get(configMaps, ref(one.metadata.name ?? ''))) === undefined;
      return isDeleted && left?.metadata.ownerReferences?.length === 1 ? true : undefined;
    });
  });

  describe('the status', () => {
    test('changes only through its subresource, which changes nothing else', async () => {
      const made = await aMember(aName());
      const at = ref(made.metadata.name ?? '');
      expect(made.status).toBeUndefined();
      const ignored = await kit.client.patch(members, at, { status: { memberID: 'a' } });
      expect([ignored.status, versionOf(ignored)]).toEqual([undefined, versionOf(made)]);
      const body = { metadata: { labels: { x: 'y' } }, spec: { clusterName: 'other' }, status: { memberID: 'a' } };
      const after = await kit.client.patch(members, at, body, { subresource: 'status' });
      expect(after).toMatchObject({ spec: { clusterName: 'db' }, status: { memberID: 'a' } });
      expect(after.metadata.labels).toBeUndefined();
    });

    test('the generation counts changes of the spec only', async () => {
      const made = await aMember(aName());
      const at = ref(made.metadata.name ?? '');
      await kit.client.patch(members, at, { status: { memberID: 'a' } }, { subresource: 'status' });
      await kit.client.patch(members, at, { metadata: { labels: { x: 'y' } } });
      expect((await kit.client.get(members, at))?.metadata.generation).toBe(1);
      const after = await kit.client.patch(members, at, { spec: { storage: { size: '2Gi' } } });
      expect(after.metadata.generation).toBe(2);
    });
  });

  describe('server-side apply', () => {
    const apply = (object: KubeObject, fields: Readonly<Record<string, unknown>>) =>
      kit.client.apply(configMaps, ref(object.metadata.name ?? ''), uidOf(object), fields);

    test('sets what it contains, removes what it contained before, and leaves what others set', async () => {
      const made = await aConfigMap(aName(), {}, { others: '1' });
      await apply(made, { data: { ours: '1', also: '1' } });
      const after = await apply(made, { data: { ours: '2' } });
      expect(after.data).toEqual({ others: '1', ours: '2' });
    });

    test('takes over what another manager has changed', async () => {
      const made = await aConfigMap(aName(), {}, { a: '1' });
      await apply(made, { data: { ours: '1' } });
      await kit.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { ours: 'theirs' } });
      expect((await apply(made, { data: { ours: '1' } })).data).toEqual({ a: '1', ours: '1' });
    });

    test('that changes nothing creates no new version', async () => {
      const made = await aConfigMap(aName());
      const first = await apply(made, { metadata: { labels: { x: 'y' } } });
      const second = await apply(made, { metadata: { labels: { x: 'y' } } });
      expect(versionOf(second)).toBe(versionOf(first));
    });

    test('is refused for another object of that name', async () => {
      const made = await aConfigMap(aName());
      const other = { ...made, metadata: { ...made.metadata, uid: '11111111-0000-4000-8000-000000000000' } };
      expect((await refusal(apply(other, { data: { a: '2' } }))).code).toBe(409);
    });
  });

  test('lists select by namespace and labels', async () => {
    const elsewhere = await kit.world.namespace();
    const name = aName();
    await aConfigMap(name, { labels: { group: name, role: 'a' } });
    await aConfigMap(`${name}-b`, { labels: { group: name } });
    const found = async (selector: string, where = kit.namespace) =>
      (await listAll(kit.client, configMaps, { namespace: where, selector })).map((o) => o.metadata.name);
    expect(await found(`group=${name}`)).toEqual([name, `${name}-b`]);
    expect(await found(`group=${name},role=a`)).toEqual([name]);
    expect(await found(`group=${name},role!=a`)).toEqual([`${name}-b`]);
    expect(await found(`group=${name},!role`)).toEqual([`${name}-b`]);
    expect(await found(`group=${name}`, elsewhere)).toEqual([]);
  });

  test('lists select by fields that the kind supports', async () => {
    const [one, other] = [aName(), aName()];
    await aConfigMap(one);
    await aConfigMap(other);
    const found = await listAll(kit.client, configMaps, { namespace: kit.namespace, fields: `metadata.name=${one}` });
    expect(found.map((o) => o.metadata.name)).toEqual([one]);
  });

  test('a Pod with a node exists until its kubelet has ended it, one without is deleted immediately', async () => {
    const aPod = (name: string, nodeName?: string) =>
      kit.client.create(pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: kit.namespace },
        spec: { containers: [{ name: 'c', image: 'i' }], ...(nodeName && { nodeName }) },
      });
    const [idle, running] = [await aPod(aName()), await aPod(aName(), 'node')];
    expect(await kit.client.delete(pods, ref(idle.metadata.name ?? ''), { uid: uidOf(idle) })).toBeUndefined();
    const left = await kit.client.delete(pods, ref(running.metadata.name ?? ''), { uid: uidOf(running) });
    expect(left?.metadata.deletionTimestamp).toBeDefined();
    expect(await kit.client.get(pods, ref(running.metadata.name ?? ''))).toBeDefined();
  });
});
