/** What the operator relies on in an API server, asked of a real one and of the model that simulations run on. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_VERSION, etcdMembers } from '../../src/api/names.ts';
import { listAll } from '../../src/kube/client.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import type { StoreEvent, WireEvent } from '../../src/kube/watch-protocol.ts';
import { watch } from '../../src/kube/watcher.ts';
import { eventually } from '../support/processes.ts';
import { type KubeWorld, modelWorld, realWorld, refusal } from './kube-world.ts';

type ConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> };
type Member = KubeObject & { readonly spec: object; readonly status?: Readonly<Record<string, unknown>> };
const MINUTE_MS = 60_000;
const configMaps: Resource<ConfigMap> = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap' };
const members: Resource<Member> = etcdMembers;

const status = (code: number, reason: string) => expect.objectContaining({ code, reason });
describe.each([
  ['the model', modelWorld],
  ['a real API server', realWorld],
])('%s', (server, start) => {
  let world: KubeWorld;
  let namespace: string;
  beforeAll(async () => {
    world = await start();
    namespace = await world.namespace();
  });
  afterAll(async () => {
    await world?.close();
  });
  let count = 0;
  const aName = (): string => `thing-${++count}`;
  const aConfigMap = (
    name: string,
    more: Partial<ConfigMap['metadata']> = {},
    data: Record<string, string> = { a: '1' },
  ) =>
    world.client.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace, ...more },
      data,
    });
  const aMember = (name: string, more: Partial<Member['metadata']> = {}) =>
    world.client.create(members, {
      apiVersion: API_VERSION,
      kind: 'EtcdMember',
      metadata: { name, namespace, ...more },
      spec: {
        clusterName: 'db',
        version: '3.6.16',
        storage: { size: '1Gi', medium: '' },
        bootstrap: true,
        initialCluster: `${name}=http://${name}.db.n.svc:2380`,
        clusterToken: 'token',
      },
    });
  const ref = (name: string) => ({ namespace, name });
  const uidOf = (object: KubeObject): string => object.metadata.uid ?? '';
  const versionOf = (object: KubeObject): string => object.metadata.resourceVersion ?? '';

  describe('names', () => {
    test('what is created has an identity of its own, and what is not there is nothing', async () => {
      const name = aName();
      expect(await world.client.get(configMaps, ref(name))).toBeUndefined();
      const made = await aConfigMap(name);
      expect(made).toMatchObject({ kind: 'ConfigMap', metadata: { name, namespace }, data: { a: '1' } });
      expect(uidOf(made).length).toBe(36);
      expect(await world.client.get(configMaps, ref(name))).toMatchObject({ metadata: { uid: uidOf(made) } });
    });

    test('a name is taken once', async () => {
      const name = aName();
      await aConfigMap(name);
      expect(await refusal(aConfigMap(name))).toEqual(status(409, 'AlreadyExists'));
    });

    test('a generated name begins as asked, and is another each time', async () => {
      const make = () =>
        world.client.create(configMaps, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { generateName: 'g-', namespace },
        });
      const [one, other] = [await make(), await make()];
      expect(one.metadata.name).toMatch(/^g-[a-z0-9]{5}$/);
      expect(one.metadata.name).not.toBe(other.metadata.name);
    });

    test.each(['Upper', 'a_b', '-a', 'a-'])('%j is no name', async (name) => {
      expect(await refusal(aConfigMap(name))).toEqual(status(422, 'Invalid'));
    });

    test('a version is nothing to create with', async () => {
      expect((await refusal(aConfigMap(aName(), { resourceVersion: '5' }))).said).toContain('resourceVersion');
    });
  });

  describe('writes', () => {
    test('a patch merges, and null removes', async () => {
      const made = await aConfigMap(aName(), { labels: { x: '1' } }, { a: '1', b: '2' });
      const after = await world.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { a: null, c: '3' } });
      expect(after.data).toEqual({ b: '2', c: '3' });
      expect(after.metadata.labels).toEqual({ x: '1' });
      expect(versionOf(after)).not.toBe(versionOf(made));
    });

    test('a patch that changes nothing is no write', async () => {
      const made = await aConfigMap(aName());
      const after = await world.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { a: '1' } });
      expect(versionOf(after)).toBe(versionOf(made));
    });

    test('a patch of what is not there is refused', async () => {
      expect(await refusal(world.client.patch(configMaps, ref(aName()), { data: {} }))).toEqual(
        status(404, 'NotFound'),
      );
    });

    test('a patch with another version or another uid is refused', async () => {
      const made = await aConfigMap(aName());
      const at = ref(made.metadata.name ?? '');
      await world.client.patch(configMaps, at, { data: { b: '1' } });
      const stale = { metadata: { resourceVersion: versionOf(made) }, data: { b: '2' } };
      expect(await refusal(world.client.patch(configMaps, at, stale))).toEqual(status(409, 'Conflict'));
      const foreign = { metadata: { uid: '11111111-0000-4000-8000-000000000000' }, data: { b: '2' } };
      expect(await refusal(world.client.patch(configMaps, at, foreign))).toEqual(status(409, 'Conflict'));
      expect((await world.client.get(configMaps, at))?.data).toEqual({ a: '1', b: '1' });
    });

    test('a deletion with another version or another uid is refused, one that fits is carried out, a second is a success', async () => {
      const made = await aConfigMap(aName());
      const at = ref(made.metadata.name ?? '');
      const uid = uidOf(made);
      const other = { uid: '11111111-0000-4000-8000-000000000000' };
      expect(await refusal(world.client.delete(configMaps, at, other))).toEqual(status(409, 'Conflict'));
      const stale = { uid, resourceVersion: '1' };
      expect(await refusal(world.client.delete(configMaps, at, stale))).toEqual(status(409, 'Conflict'));
      expect(await world.client.delete(configMaps, at, { uid, resourceVersion: versionOf(made) })).toBeUndefined();
      expect(await world.client.get(configMaps, at)).toBeUndefined();
      expect(await world.client.delete(configMaps, at, { uid })).toBeUndefined();
    });
  });

  describe('finalizers', () => {
    test('hold an object until the last of them is gone; none can be added meanwhile', async () => {
      const made = await aMember(aName(), { finalizers: ['example.com/a', 'example.com/b'] });
      const at = ref(made.metadata.name ?? '');
      const left = await world.client.delete(members, at, { uid: uidOf(made) });
      expect(left?.metadata.deletionTimestamp).toBeDefined();
      expect(versionOf(left ?? made)).not.toBe(versionOf(made));
      const finalizers = (names: readonly string[]) =>
        world.client.patch(members, at, { metadata: { finalizers: names } });
      expect((await finalizers(['example.com/b'])).metadata.finalizers).toEqual(['example.com/b']);
      expect([403, 422]).toContain((await refusal(finalizers(['example.com/b', 'example.com/c']))).code);
      await finalizers([]);
      expect(await world.client.get(members, at)).toBeUndefined();
    });

    test('a second deletion changes nothing', async () => {
      const made = await aMember(aName(), { finalizers: ['example.com/a'] });
      const at = ref(made.metadata.name ?? '');
      const first = await world.client.delete(members, at, { uid: uidOf(made) });
      const second = await world.client.delete(members, at, { uid: uidOf(made) });
      expect(second && versionOf(second)).toBe(first && versionOf(first));
    });
  });

  test('what is owned by something that is gone is collected, what is owned by something else is not', async () => {
    const [owner, other] = [await aConfigMap(aName()), await aConfigMap(aName())];
    const owned = (by: ConfigMap) =>
      aConfigMap(aName(), {
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: by.metadata.name ?? '', uid: uidOf(by) }],
      });
    const [child, kept] = [await owned(owner), await owned(other)];
    await world.client.delete(configMaps, ref(owner.metadata.name ?? ''), { uid: uidOf(owner) });
    await eventually('the collection', async () => {
      await world.collectGarbage();
      return (await world.client.get(configMaps, ref(child.metadata.name ?? ''))) === undefined ? true : undefined;
    });
    expect(await world.client.get(configMaps, ref(kept.metadata.name ?? ''))).toBeDefined();
  });

  test('of two owners the one that is gone is forgotten, and one of the same name is somebody else', async () => {
    const [owner, other] = [await aConfigMap(aName()), await aConfigMap(aName())];
    const by = ({ metadata }: ConfigMap) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name: metadata.name ?? '',
      uid: metadata.uid ?? '',
    });
    const both = await aConfigMap(aName(), { ownerReferences: [by(owner), by(other)] });
    const one = await aConfigMap(aName(), { ownerReferences: [by(owner)] });
    await world.client.delete(configMaps, ref(owner.metadata.name ?? ''), { uid: uidOf(owner) });
    await aConfigMap(owner.metadata.name ?? '');
    await eventually('the collection', async () => {
      await world.collectGarbage();
      const left = await world.client.get(configMaps, ref(both.metadata.name ?? ''));
      const gone = (await world.client.get(configMaps, ref(one.metadata.name ?? ''))) === undefined;
      return gone && left?.metadata.ownerReferences?.length === 1 ? true : undefined;
    });
  });

  describe('the status', () => {
    test('is not taken with the object, has a door of its own, and leaves the rest alone', async () => {
      const made = await aMember(aName());
      const at = ref(made.metadata.name ?? '');
      expect(made.status).toBeUndefined();
      const ignored = await world.client.patch(members, at, { status: { memberID: 'a' } });
      expect([ignored.status, versionOf(ignored)]).toEqual([undefined, versionOf(made)]);
      const body = { metadata: { labels: { x: 'y' } }, spec: { clusterName: 'other' }, status: { memberID: 'a' } };
      const after = await world.client.patch(members, at, body, { subresource: 'status' });
      expect(after).toMatchObject({ spec: { clusterName: 'db' }, status: { memberID: 'a' } });
      expect(after.metadata.labels).toBeUndefined();
    });

    test('the generation counts changes of the spec only', async () => {
      const made = await aMember(aName());
      const at = ref(made.metadata.name ?? '');
      await world.client.patch(members, at, { status: { memberID: 'a' } }, { subresource: 'status' });
      await world.client.patch(members, at, { metadata: { labels: { x: 'y' } } });
      expect((await world.client.get(members, at))?.metadata.generation).toBe(1);
      const after = await world.client.patch(members, at, { spec: { storage: { size: '2Gi' } } });
      expect(after.metadata.generation).toBe(2);
    });
  });

  describe('server-side apply', () => {
    const apply = (object: KubeObject, fields: Readonly<Record<string, unknown>>) =>
      world.client.apply(configMaps, ref(object.metadata.name ?? ''), uidOf(object), fields);

    test('sets what it names, removes what it named before, and leaves what others set', async () => {
      const made = await aConfigMap(aName(), {}, { others: '1' });
      await apply(made, { data: { ours: '1', also: '1' } });
      const after = await apply(made, { data: { ours: '2' } });
      expect(after.data).toEqual({ others: '1', ours: '2' });
    });

    test('takes over what somebody else has changed', async () => {
      const made = await aConfigMap(aName(), {}, { a: '1' });
      await apply(made, { data: { ours: '1' } });
      await world.client.patch(configMaps, ref(made.metadata.name ?? ''), { data: { ours: 'theirs' } });
      expect((await apply(made, { data: { ours: '1' } })).data).toEqual({ a: '1', ours: '1' });
    });

    test('that changes nothing is no write', async () => {
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
    const elsewhere = await world.namespace();
    const name = aName();
    await aConfigMap(name, { labels: { group: name, role: 'a' } });
    await aConfigMap(`${name}-b`, { labels: { group: name } });
    const found = async (selector: string, where = namespace) =>
      (await listAll(world.client, configMaps, { namespace: where, selector })).map((o) => o.metadata.name);
    expect(await found(`group=${name}`)).toEqual([name, `${name}-b`]);
    expect(await found(`group=${name},role=a`)).toEqual([name]);
    expect(await found(`group=${name},role!=a`)).toEqual([`${name}-b`]);
    expect(await found(`group=${name},!role`)).toEqual([`${name}-b`]);
    expect(await found(`group=${name}`, elsewhere)).toEqual([]);
  });

  describe('a watch', () => {
    /** The first events of one connection, as words. */
    async function told(
      query: Record<string, string>,
      number: number,
      act: (seen: readonly string[]) => Promise<unknown> = async () => undefined,
      patienceMs = MINUTE_MS / 2,
    ) {
      const stop = new AbortController();
      const seen: string[] = [];
      const read = async (): Promise<void> => {
        const call = {
          namespace,
          query: { watch: 'true', allowWatchBookmarks: 'true', ...query },
          signal: stop.signal,
        };
        for await (const event of world.client.watch(configMaps, call)) {
          seen.push(words(event));
          if (seen.length >= number) return;
        }
        seen.push('end');
      };
      const reading = read();
      reading.catch(() => undefined); // it is told below, also when it fails while we act
      await act(seen);
      await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, patienceMs))]);
      stop.abort();
      await reading.catch(() => undefined);
      return seen;
    }
    const words = (event: WireEvent<ConfigMap>): string =>
      event.type === 'ERROR'
        ? `ERROR ${event.object.code}`
        : event.type === 'BOOKMARK'
          ? `BOOKMARK ${event.object.metadata.annotations?.['k8s.io/initial-events-end'] ?? ''}`
          : `${event.type} ${event.object.metadata.name} ${JSON.stringify(event.object.data)}`;
    const streaming = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };

    test('with initial events tells what is there, then the end of that, then every change in order', async () => {
      const name = aName();
      await aConfigMap(name, { labels: { watched: name } });
      const seen = await told({ ...streaming, labelSelector: `watched=${name}` }, 5, async (begun) => {
        await eventually('the end of what is there', () => begun.includes('BOOKMARK true') || undefined);
        await world.client.patch(configMaps, ref(name), { data: { a: '2' } });
        const now = await world.client.patch(configMaps, ref(name), { data: { a: '3' } });
        await world.client.delete(configMaps, ref(name), { uid: uidOf(now) });
      });
      expect(seen).toEqual([
        `ADDED ${name} {"a":"1"}`,
        'BOOKMARK true',
        `MODIFIED ${name} {"a":"2"}`,
        `MODIFIED ${name} {"a":"3"}`,
        `DELETED ${name} {"a":"3"}`,
      ]);
    });

    test('from a version tells everything since, also what happened before it was opened', async () => {
      const name = aName();
      const made = await aConfigMap(name, { labels: { watched: name } });
      await world.client.patch(configMaps, ref(name), { data: { a: '2' } });
      const seen = await told({ resourceVersion: versionOf(made), labelSelector: `watched=${name}` }, 1);
      expect(seen).toEqual([`MODIFIED ${name} {"a":"2"}`]);
    });

    test('an object that comes to match is new, and one that ceases to match is gone', async () => {
      const name = aName();
      const made = await aConfigMap(name);
      await world.client.patch(configMaps, ref(name), { metadata: { labels: { watched: name } } });
      await world.client.patch(configMaps, ref(name), { metadata: { labels: null } });
      const seen = await told({ resourceVersion: versionOf(made), labelSelector: `watched=${name}` }, 2);
      expect(seen.map((s) => s.split(' ')[0])).toEqual(['ADDED', 'DELETED']);
    });

    // A real server does so once a minute.
    test.runIf(server === 'the model' || process.env['DEV_TEST_ALL'])(
      'that changes elsewhere do not concern tells now and then how far it has come',
      { timeout: 2 * MINUTE_MS },
      async () => {
        const made = await aConfigMap(aName());
        const query = { resourceVersion: versionOf(made), labelSelector: 'watched=nobody' };
        const elsewhere = async (): Promise<void> => {
          await aConfigMap(aName());
          await world.idle();
        };
        expect(await told(query, 1, elsewhere, 1.5 * MINUTE_MS)).toEqual(['BOOKMARK ']);
      },
    );

    // The server is started anew.
    test('from a version that is too old says that it is gone', { timeout: 3 * MINUTE_MS }, async () => {
      expect(await told({ resourceVersion: await world.ancientVersion() }, 1)).toEqual(['ERROR 410']);
    });

    test('the watcher makes of all this a whole list and its changes, with versions that only grow', async () => {
      const name = aName();
      await aConfigMap(name, { labels: { watched: name } });
      const stop = new AbortController();
      const seen: StoreEvent<ConfigMap>[] = [];
      const running = watch({
        client: world.client,
        resource: configMaps,
        namespace,
        selector: `watched=${name}`,
        signal: stop.signal,
        emit: (event) => seen.push(event),
        onError: () => {},
        sleep: () => Promise.resolve(),
        random: () => 0,
      });
      await eventually('the list', () => seen.find((event) => event.type === 'synced'));
      await world.client.patch(configMaps, ref(name), { data: { a: '2' } });
      await eventually('the change', () => seen.filter((event) => event.type === 'put')[1]);
      stop.abort();
      await running;
      expect(seen.slice(0, 3).map((event) => event.type)).toEqual(['restart', 'put', 'synced']);
    });
  });

  test('a Pod that runs somewhere stays until it has ended, one that does not goes at once', async () => {
    const aPod = (name: string, nodeName?: string) =>
      world.client.create(pods, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: { containers: [{ name: 'c', image: 'i' }], ...(nodeName && { nodeName }) },
      });
    const [idle, running] = [await aPod(aName()), await aPod(aName(), 'node')];
    expect(await world.client.delete(pods, ref(idle.metadata.name ?? ''), { uid: uidOf(idle) })).toBeUndefined();
    const left = await world.client.delete(pods, ref(running.metadata.name ?? ''), { uid: uidOf(running) });
    expect(left?.metadata.deletionTimestamp).toBeDefined();
    expect(await world.client.get(pods, ref(running.metadata.name ?? ''))).toBeDefined();
  });
});
