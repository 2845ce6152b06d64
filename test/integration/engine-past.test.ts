/** The operator gets a stale or incomplete view of the cluster. It does nothing that harms the actual one. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../../src/kube/resources.ts';
import { recordList } from '../support/faults/watch.ts';
import { eventually, pause } from '../support/servers/processes.ts';
import { alive, named, type Scene, scenery, writes } from '../support/servers/scene.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => {
  await world?.stop();
});
const { aScene, ends, expectOneSeed } = scenery(() => world);

const KINDS: readonly Resource[] = [clusters, members, pods, services, persistentVolumeClaims, podDisruptionBudgets];

/** The proxy keeps reporting the objects as they are now, whatever happens. Call the result to end that. */
async function rememberNow(scene: Scene, kinds: readonly Resource[]): Promise<() => () => void> {
  const { transport } = world.admin;
  const lists = await Promise.all(
    kinds.map(async (kind) => ({ kind, list: await recordList(transport, kind, scene.namespace) })),
  );
  return () => {
    const removals = lists.map(({ kind, list }) =>
      scene.proxy.fault({ verb: 'watch', resource: kind.plural }, { do: 'watch', how: { is: 'past', list } }),
    );
    scene.proxy.cut();
    return () => {
      for (const remove of removals) remove();
      scene.proxy.cut();
    };
  };
}

const remove = async <T extends KubeObject>(resource: Resource<T>, namespace: string, name: string): Promise<void> => {
  const found = await world.admin.get(resource, { namespace, name });
  await world.admin.delete(resource, { namespace, name }, { uid: found?.metadata.uid ?? '' });
};
const nothingLeft = (namespace: string): Promise<unknown> =>
  eventually(
    'nothing to be left',
    async () => {
      const left = await Promise.all(KINDS.map((kind) => world.list(kind, namespace)));
      return left.flat().length === 0 ? true : undefined;
    },
    { timeoutMs: 60_000 },
  );
const lists = (scene: Scene, plural: string, since: number): number =>
  scene.proxy.calls.slice(since).filter((c) => c.resource === plural && c.path.includes('sendInitialEvents')).length;
const uids = async (namespace: string): Promise<readonly string[]> => {
  const found = await Promise.all(KINDS.map((kind) => world.list(kind, namespace)));
  return found.flat().map((object) => `${object.kind} ${object.metadata.name} ${object.metadata.uid}`);
};

test('a server that offers an older state after a reconnect is not believed: nothing is created for a deleted cluster', async () => {
  const scene = await aScene();
  await world.createCluster(scene.namespace, 'db');
  await expectOneSeed(scene);
  const toThePast = await rememberNow(scene, [clusters, members]);
  await remove(clusters, scene.namespace, 'db');
  await nothingLeft(scene.namespace);
  const [calls, written] = [scene.proxy.calls.length, writes(scene).length];
  const toThePresent = toThePast();
  await eventually('it to ask again and again', () => lists(scene, clusters.plural, calls) >= 3 || undefined);
  expect(named(writes(scene).slice(written))).toEqual([]);
  expect(scene.operator.log()).toContain('which is older than what it has already served');
  toThePresent();
  await world.createCluster(scene.namespace, 'second');
  await world.patiently(60_000).condition(scene.namespace, 'second', 'Available', 'True');
  expect(await world.admin.get(clusters, { namespace: scene.namespace, name: 'db' })).toBeUndefined();
  await alive(scene);
  await ends(scene);
}, 180_000);

test('an operator that starts with a stale view does no harm to a cluster that was created again under the same name', async () => {
  const scene = await aScene();
  await world.createCluster(scene.namespace, 'db');
  await expectOneSeed(scene);
  const toThePast = await rememberNow(scene, KINDS);
  await remove(clusters, scene.namespace, 'db');
  await nothingLeft(scene.namespace);
  await world.createCluster(scene.namespace, 'db');
  await world.condition(scene.namespace, 'db', 'Available', 'True');
  await world.condition(scene.namespace, 'db', 'Progressing', 'False', 'Reconciled');
  await scene.operator.stop('SIGKILL');
  const before = await uids(scene.namespace);
  const toThePresent = toThePast();
  scene.start();
  const passOver = `"key":"${scene.namespace}/db"`;
  await eventually('it to reconcile the cluster', () => scene.operator.log().includes(passOver) || undefined);
  await pause(5_000); // time to do harm
  expect(await uids(scene.namespace)).toEqual(before);
  toThePresent();
  await world.condition(scene.namespace, 'db', 'Available', 'True');
  await pause(1_000);
  expect(await uids(scene.namespace)).toEqual(before);
  await alive(scene);
  await ends(scene);
}, 180_000);

/** From now on the watch of a kind omits creations and deletions; the result ends that with a version that is too old. */
function withHoles(scene: Scene, { plural }: Resource): () => void {
  const match = { verb: 'watch', resource: plural } as const;
  const fill = scene.proxy.fault(match, { do: 'watch', how: { is: 'lossy', types: ['ADDED', 'DELETED'] } });
  scene.proxy.cut();
  return () => {
    fill();
    scene.proxy.fault({ ...match, nth: 1 }, { do: 'watch', how: { is: 'gone' } });
    scene.proxy.cut();
  };
}
const followed = (scene: Scene): Promise<unknown> =>
  eventually(
    'every kind to be listed',
    () =>
      KINDS.every(({ plural }) => lists(scene, plural, 0) > 0 && scene.proxy.calls.some((c) => c.code === 200)) ||
      undefined,
  );

test.runIf(process.env['DEV_TEST_ALL'])(
  'what it has created and never received is not created twice, and is found with the next list',
  async () => {
    const scene = await aScene();
    await followed(scene);
    await pause(1_000);
    const end = withHoles(scene, members);
    await world.createCluster(scene.namespace, 'db');
    await eventually('the seed to be made', () =>
      scene.proxy.calls.find((c) => c.verb === 'create' && c.resource === 'etcdmembers' && c.code === 201),
    );
    await pause(3_000); // time to create another one
    expect((await world.list(members, scene.namespace)).length).toBe(1);
    end();
    await expectOneSeed(scene);
    await alive(scene);
    await ends(scene);
  },
  180_000,
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'a Pod whose deletion was not received comes back with the next list',
  async () => {
    const scene = await aScene();
    await world.createCluster(scene.namespace, 'db');
    await expectOneSeed(scene);
    const [pod] = await world.list(pods, scene.namespace);
    const end = withHoles(scene, pods);
    await remove(pods, scene.namespace, pod?.metadata.name ?? '');
    await pause(3_000);
    end();
    await eventually(
      'another Pod',
      async () => (await world.list(pods, scene.namespace)).find((p) => p.metadata.uid !== pod?.metadata.uid),
      { timeoutMs: 60_000 },
    );
    await world.patiently(60_000).condition(scene.namespace, 'db', 'Available', 'True');
    await alive(scene);
    await ends(scene);
  },
  180_000,
);
