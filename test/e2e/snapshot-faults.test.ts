/** Snapshots and restores with a fault: it is named, nothing is lost or overwritten, and the operation continues when it is fixed. */

import { existsSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { podProcesses, signalAll, volumeFolder } from '../../local/faults.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { aTenant, becomes, conditionOf, KIND, type Tenant } from '../support/journeys/journey.ts';
import {
  ask,
  Clusters,
  hasFailed,
  isStored,
  keyIn,
  readyOf,
  restoredIs,
  snapshotOf,
} from '../support/journeys/snapshots.ts';
import { aStore, claim, Files, S3_SECRET_KEY, TenantStore } from '../support/journeys/tenant-store.ts';
import { aWriter } from '../support/journeys/writer.ts';

interface Scene {
  readonly tenant: Tenant;
  readonly clusters: Clusters;
  readonly store: TenantStore;
}

/** A cluster with some keys and an empty bucket. */
async function aScene(spec: object = {}): Promise<Scene> {
  const tenant = await aTenant();
  const clusters = new Clusters(tenant, 'plain');
  await clusters.begin('db', { ...spec });
  const store = await aStore(tenant);
  await clusters.serves('db');
  const writer = await aWriter(tenant, 'db');
  expect((await writer.end()).lost, ABOUT_DATA).toEqual([]);
  return { tenant, clusters, store };
}

const restore = (store: TenantStore, key: string) => ({ bootstrap: { restore: { source: store.at(key) } } });

/** Waits until the failure of an attempt is reported while the next one is awaited. */
const attemptFailed = (tenant: Tenant, name: string, reason: string): Promise<void> =>
  becomes(`an attempt at ${name} to fail with ${reason}`, async () => {
    expect(readyOf(await snapshotOf(tenant, name))?.message).toContain(`: ${reason}: `);
  });

test('wrong credentials are named and nothing is stored; a flipped bit is detected before etcd starts, and the restore succeeds without it', async () => {
  const { tenant, clusters, store } = await aScene();
  await store.credentials('not-the-secret-key');
  await ask(tenant, 'denied', 'db', store.at('night'));
  expect(await hasFailed(tenant, 'denied', 'AccessDenied')).toContain('check the credentials');
  expect(await store.files.all()).toEqual([]);
  await store.credentials(S3_SECRET_KEY);
  await ask(tenant, 'mine', 'db', store.at('night'));
  const artifact = await isStored(tenant, 'mine');
  const key = keyIn(artifact);
  expect(await store.files.all()).toEqual([key, `${key}.manifest.json`]);

  await store.files.flip(key);
  await clusters.begin('again', restore(store, key));
  expect(await restoredIs(tenant, 'again', 'False', 'SnapshotDamaged')).toContain(key);
  await store.files.flip(key);
  await restoredIs(tenant, 'again', 'True', 'Restored');
  await clusters.serves('again');
  await clusters.hasAllOf('again', 'db', artifact);
});

const all = test.runIf(process.env['DEV_TEST_ALL']);
/** Larger than what an agent and a server buffer. */
const LARGE_MIB = 96;
const LARGE = { storage: { size: '1Gi', medium: 'Memory' } };

/** The first part is uploaded, and nothing is stored yet. */
async function midway(store: TenantStore): Promise<void> {
  const uploading = async (): Promise<void> => {
    if ((await store.files.pieces()).length === 0) throw new Error('no part was uploaded');
  };
  await becomes('a part of the upload to arrive', uploading, 10);
  expect(await store.files.all()).toEqual([]);
}

const agents = async (tenant: Tenant): Promise<readonly string[]> =>
  (await tenant.list('pods', 'app.kubernetes.io/component=agent')).map(({ metadata }) => metadata.name);

describe('in the middle of the stream', () => {
  const begin = async (): Promise<Scene> => {
    const scene = await aScene(LARGE);
    await scene.clusters.fill('db', LARGE_MIB);
    return scene;
  };

  /** Whatever happened, there is one snapshot, complete, and nothing beside it. */
  async function endsWell({ tenant, clusters, store }: Scene): Promise<string> {
    const artifact = await isStored(tenant, 'large');
    const key = keyIn(artifact);
    expect(await store.files.all()).toEqual([key, `${key}.manifest.json`]);
    await clusters.begin('again', { storage: { size: '1Gi' }, ...restore(store, key) });
    return key;
  }

  all('an agent is killed, and its successor stores the snapshot, which was not visible before', async () => {
    const scene = await begin();
    const { tenant, clusters, store } = scene;
    const server = await store.processes();
    await ask(tenant, 'large', 'db', store.at(''));
    await midway(store);
    signalAll(server, 'SIGSTOP');
    const [agent = ''] = await agents(tenant);
    signalAll(await podProcesses(tenant.cluster, tenant.namespace, agent), 'SIGKILL');
    await becomes('the agent to be over', async () => {
      expect(await tenant.kubectl('get', 'pod', agent, '-o', 'jsonpath={.status.phase}')).toBe('Failed');
    });
    expect(await store.files.all()).toEqual([]);
    signalAll(server, 'SIGCONT');
    await endsWell(scene);
    expect((await agents(tenant)).length).toBeGreaterThan(1);
    expect(await store.files.pieces()).toEqual([]);
    await restoredIs(tenant, 'again', 'True', 'Restored');
    await clusters.serves('again');
    await clusters.hasAllOf('again', 'db', await isStored(tenant, 'large'));
  });

  all(
    'the server is killed and comes back, and then again while an agent downloads, which is killed as well',
    async () => {
      const scene = await begin();
      const { tenant, clusters, store } = scene;
      const server = await store.processes();
      await ask(tenant, 'large', 'db', store.at(''));
      await midway(store);
      signalAll(server, 'SIGKILL');
      await endsWell(scene);
      await becomes(
        'the snapshot to be downloaded',
        async () => {
          const [claim] = (await tenant.list('pvc')).filter(({ metadata }) => metadata.name.includes('again'));
          const folder = await volumeFolder(tenant.cluster, tenant.namespace, claim?.metadata.name ?? '');
          if (!fetching(folder)) throw new Error('nothing is fetched');
        },
        20,
      );
      signalAll(await store.processes(), 'SIGKILL');
      const [seed] = (await tenant.list('pods')).filter(({ metadata }) => metadata.name.startsWith('again'));
      signalAll(await podProcesses(tenant.cluster, tenant.namespace, seed?.metadata.name ?? ''), 'SIGKILL');
      await restoredIs(tenant, 'again', 'True', 'Restored');
      await clusters.serves('again');
      await clusters.hasAllOf('again', 'db', await isStored(tenant, 'large'));
    },
  );
});

const fetching = (folder: string): boolean =>
  [folder, join(folder, 'data')].some(
    (each) => existsSync(join(each, '.restore.db')) || existsSync(join(each, 'member')),
  );

all('a server that is unreachable for minutes is named, and the snapshot is stored when it is back', async () => {
  const { tenant, store } = await aScene();
  await store.stop();
  await ask(tenant, 'patient', 'db', store.at(''));
  await attemptFailed(tenant, 'patient', 'StoreUnreachable');
  await store.start();
  await isStored(tenant, 'patient');
});

all('a missing bucket and a foreign object fail a snapshot with their names', async () => {
  const { tenant, store } = await aScene();
  const theirs = 'night/collides.db';
  await store.files.write(theirs, 'a foreign object');
  await store.files.write('late/manifest.db.manifest.json', 'a foreign object, too');
  await ask(tenant, 'collides', 'db', store.at('night'));
  await ask(tenant, 'manifest', 'db', store.at('late'));
  await ask(tenant, 'nowhere', 'db', store.at('night', { bucket: 'missing' }));
  expect(await hasFailed(tenant, 'collides', 'ObjectExists')).toContain(theirs);
  expect(await hasFailed(tenant, 'manifest', 'ObjectExists')).toContain('manifest.db');
  expect(await hasFailed(tenant, 'nowhere', 'BucketNotFound')).toContain('missing');
  expect(await store.files.all()).toEqual(['late/manifest.db.manifest.json', theirs]);
  expect((await store.files.read(theirs)).toString(), ABOUT_DATA).toBe('a foreign object');
});

all(
  'an object that is truncated, missing or too large for the volume bootstraps no cluster, and one that is repaired does',
  async () => {
    const { tenant, clusters, store } = await aScene();
    await ask(tenant, 'whole', 'db', store.at(''), { compression: 'Zstd' });
    const artifact = await isStored(tenant, 'whole');
    const key = keyIn(artifact);
    const content = await store.files.read(key);
    await store.files.cut(key, 100);
    await clusters.begin('again', restore(store, key));
    await clusters.begin('lost', restore(store, 'no/such.db'));
    await clusters.begin('small', { storage: { size: '96Mi' }, ...restore(store, key) });
    expect(await restoredIs(tenant, 'again', 'False', 'SnapshotDamaged')).toContain('bytes');
    expect(await restoredIs(tenant, 'lost', 'False', 'ObjectNotFound')).toContain('no/such.db');
    await store.files.write(key, content);
    await restoredIs(tenant, 'again', 'True', 'Restored');
    await clusters.serves('again');
    await clusters.hasAllOf('again', 'db', artifact);
    expect(await restoredIs(tenant, 'small', 'False', 'NoSpace')).toContain('storage.size');
    expect(conditionOf(await tenant.get(KIND, 'small'), 'Available')).toMatchObject({ status: 'False' });
  },
);

test('keys that escape their folder are refused by admission', async () => {
  const tenant = await aTenant();
  const store = new TenantStore(tenant, false, new Files(''));
  for (const path of ['../else', 'a/../../b', '/etc', 'a//b', '%2e%2e/b', 'a/./b', 'a\\..\\b'])
    for (const place of [store.at(path), { pvc: { claimName: 'any', subPath: path } }]) {
      await expect(ask(tenant, 'astray', 'db', place), path).rejects.toThrow(/must be a relative path|backslash/);
      const spec = { bootstrap: { restore: { source: place } } };
      await expect(tenant.create('astray', spec), path).rejects.toThrow(/must be a relative path|backslash/);
    }
});

all('a link that leads out of a volume is not followed, neither to write nor to read', async () => {
  const tenant = await aTenant();
  const clusters = new Clusters(tenant, 'plain');
  await claim(tenant, 'volume', '64Mi');
  const at = (subPath: string) => ({ pvc: { claimName: 'volume', subPath } });
  await clusters.begin('db', {});
  await clusters.serves('db');
  await ask(tenant, 'inside', 'db', at('folder'));
  const { uri } = await isStored(tenant, 'inside');
  expect(uri).toBe('file:///snapshot/data/folder/inside.db');
  const root = await volumeFolder(tenant.cluster, tenant.namespace, 'volume');
  await symlink('/tmp', join(root, 'out'));
  await ask(tenant, 'outside', 'db', at('out'));
  expect(await hasFailed(tenant, 'outside', 'PathRefused')).toContain('out');
  await clusters.begin('again', { bootstrap: { restore: { source: at('out/passwd') } } });
  expect(await restoredIs(tenant, 'again', 'False', 'PathRefused')).toContain('out');
});
