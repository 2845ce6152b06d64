/** Snapshots under writes, and restores of them: in S3 and on volumes, on the same and on the next minor. */

import { describe, expect, test } from 'vitest';
import { volumeFolder } from '../../local/faults.ts';
import { ETCD_VERSIONS, type EtcdMinor, etcdImageArchive } from '../../local/images.ts';
import type { Artifact } from '../../src/api/etcd-snapshot.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { aTenant, KIND, type Tenant } from '../support/journeys/journey.ts';
import {
  ask,
  Clusters,
  ENCRYPTION_KEY,
  isStored,
  KEY_SECRET,
  keyIn,
  restoredIs,
  type Security,
} from '../support/journeys/snapshots.ts';
import { aStore, claim, Files, opaque } from '../support/journeys/tenant-store.ts';
import { aWriter, type Writer } from '../support/journeys/writer.ts';

const ENCRYPTED = { compression: 'Zstd', encryption: { keySecretRef: { name: KEY_SECRET } } };
const CLAIM = 'backups';

/** Where snapshots of a journey are stored: `at` a folder of it, or a file. */
interface Stored {
  readonly at: (path: string) => object;
  readonly files: () => Promise<Files>;
}

async function inS3(tenant: Tenant, tls = false): Promise<Stored> {
  const store = await aStore(tenant, { tls });
  return { at: (key) => store.at(key), files: async () => store.files };
}

async function onVolume(tenant: Tenant): Promise<Stored> {
  await claim(tenant, CLAIM, '256Mi');
  const folder = (): Promise<string> => volumeFolder(tenant.cluster, tenant.namespace, CLAIM);
  return {
    at: (subPath) => ({ pvc: { claimName: CLAIM, subPath } }),
    files: async () => new Files(await folder()),
  };
}

/** Writes before, during and after the snapshot. */
async function taken(clusters: Clusters, from: string, stored: Stored, how: object = {}): Promise<Artifact> {
  const { tenant } = clusters;
  const writer: Writer = await aWriter(tenant, from, await clusters.access(from));
  const name = `of-${from}`;
  await ask(tenant, name, from, stored.at('night'), how);
  const artifact = await isStored(tenant, name);
  await writer.served();
  expect((await writer.end()).lost, ABOUT_DATA).toEqual([]);
  const { revision = 0, totalKeys = 0, clusterID } = artifact;
  expect(revision).toBeGreaterThan(0);
  expect(totalKeys).toBeGreaterThan(0);
  expect(clusterID).toBe((await tenant.get(KIND, from)).status?.clusterID);
  const files = await stored.files();
  expect(await files.all()).toEqual(expect.arrayContaining([keyIn(artifact), `${keyIn(artifact)}.manifest.json`]));
  expect((await files.read(keyIn(artifact))).length).toBe(artifact.sizeBytes);
  return artifact;
}

const from = (stored: Stored, artifact: Artifact, more: object = {}): object => ({
  bootstrap: { restore: { source: stored.at(keyIn(artifact)), ...more } },
});

const load = async (tenant: Tenant, ...minors: readonly EtcdMinor[]): Promise<void> => {
  for (const minor of minors) await tenant.cluster.load([await etcdImageArchive(minor)]);
};

test('a compressed and encrypted snapshot of a cluster with mTLS and auth is restored, only with its key, and no secret is readable', async () => {
  const tenant = await aTenant();
  const stored = await inS3(tenant);
  const clusters = new Clusters(tenant, 'mTLS and auth');
  await opaque(tenant, KEY_SECRET, { key: ENCRYPTION_KEY });
  await clusters.begin('first', { replicas: 3 });
  await clusters.serves('first');
  const artifact = await taken(clusters, 'first', stored, ENCRYPTED);
  expect(artifact).toMatchObject({ compression: 'Zstd', encrypted: true, etcdVersion: ETCD_VERSIONS['3.6'] });
  expect(keyIn(artifact)).toBe('night/of-first.db.zst.enc');
  const bytes = await (await stored.files()).read(keyIn(artifact));
  expect(bytes.includes('seq/0000')).toBe(false);

  const { encryption } = ENCRYPTED;
  await opaque(tenant, KEY_SECRET, { key: 'another-encryption-key-of-32-byt' });
  await clusters.begin('again', { replicas: 3, ...from(stored, artifact, { encryption }) });
  expect(await restoredIs(tenant, 'again', 'False', 'WrongKey')).toContain('encrypted with the key');
  await opaque(tenant, KEY_SECRET, { key: ENCRYPTION_KEY });
  await restoredIs(tenant, 'again', 'True', 'Restored');
  await clusters.serves('again');
  await clusters.hasAllOf('again', 'first', artifact);
  await clusters.tellNobody();
});

test('a snapshot on a volume is restored into a cluster of the next minor', async () => {
  const tenant = await aTenant();
  await load(tenant, '3.5');
  const stored = await onVolume(tenant);
  const clusters = new Clusters(tenant, 'plain');
  await clusters.begin('older', { version: ETCD_VERSIONS['3.5'] });
  await clusters.serves('older');
  const artifact = await taken(clusters, 'older', stored);
  expect(artifact).toMatchObject({ compression: 'None', encrypted: false, etcdVersion: ETCD_VERSIONS['3.5'] });
  expect(keyIn(artifact)).toBe('night/of-older.db');
  await clusters.begin('newer', { version: ETCD_VERSIONS['3.6'], ...from(stored, artifact) });
  await restoredIs(tenant, 'newer', 'True', 'Restored');
  await clusters.serves('newer');
  await clusters.hasAllOf('newer', 'older', artifact);
});

type Where = 'S3' | 'S3 with its own CA' | 'a volume';

const places: Readonly<Record<Where, (tenant: Tenant) => Promise<Stored>>> = {
  S3: (tenant) => inS3(tenant),
  'S3 with its own CA': (tenant) => inS3(tenant, true),
  'a volume': onVolume,
};

describe.each<[Where, Security]>([
  ['S3', 'plain'],
  ['S3 with its own CA', 'TLS'],
  ['S3', 'TLS and auth'],
  ['S3', 'mTLS and auth'],
  ['a volume', 'plain'],
  ['a volume', 'TLS and auth'],
  ['a volume', 'mTLS and auth'],
])('in %s, %s', (where, security) => {
  test.runIf(process.env['DEV_TEST_ALL'])(
    'snapshots of 3.5, 3.6 and 3.7 are restored into clusters of the same and of the next minor',
    async () => {
      const tenant = await aTenant();
      await load(tenant, '3.5', '3.7');
      const stored = await places[where](tenant);
      const clusters = new Clusters(tenant, security);
      await clusters.begin('v35', { version: ETCD_VERSIONS['3.5'] });
      await clusters.serves('v35');
      for (const [source, ...targets] of CHAIN) {
        const artifact = await taken(clusters, source, stored);
        for (const [name, minor] of targets) {
          await clusters.begin(name, { version: ETCD_VERSIONS[minor], ...from(stored, artifact) });
          await restoredIs(tenant, name, 'True', 'Restored');
          await clusters.serves(name);
          await clusters.hasAllOf(name, source, artifact);
        }
        await tenant.kubectl('delete', KIND, source);
      }
    },
  );
});

/** Each is restored from the first, on a minor; one of them is the next to be saved. */
const CHAIN: readonly (readonly [string, ...(readonly (readonly [string, EtcdMinor])[])])[] = [
  ['v35', ['again35', '3.5'], ['v36', '3.6']],
  ['v36', ['again36', '3.6'], ['v37', '3.7']],
  ['v37', ['again37', '3.7']],
];

test.runIf(process.env['DEV_TEST_ALL'])(
  'a version that cannot read the snapshot, and users that the spec does not mention, are refused with what to do',
  async () => {
    const tenant = await aTenant();
    await load(tenant, '3.7');
    const stored = await inS3(tenant);
    const clusters = new Clusters(tenant, 'TLS and auth');
    await clusters.begin('newest', { version: ETCD_VERSIONS['3.7'] });
    await clusters.serves('newest');
    const artifact = await taken(clusters, 'newest', stored);
    await clusters.begin('too-old', { version: ETCD_VERSIONS['3.6'], ...from(stored, artifact) });
    expect(await restoredIs(tenant, 'too-old', 'False', 'SnapshotTooNew')).toContain('spec.version');
    const { auth: _, ...open } = clusters.spec('unguarded');
    await tenant.create('unguarded', { version: ETCD_VERSIONS['3.7'], ...open, ...from(stored, artifact) });
    expect(await restoredIs(tenant, 'unguarded', 'False', 'AuthRequired')).toContain('spec.auth');
  },
);
