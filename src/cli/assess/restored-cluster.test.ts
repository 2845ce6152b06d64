import { describe, expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { aSnapshot } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { restoredCluster, restoreWarnings } from './restored-cluster.ts';

const checksum = `sha256:${'a'.repeat(64)}`;
const stored = (
  destination: EtcdSnapshot['spec']['destination'],
  more: Partial<EtcdSnapshot['spec']> = {},
): EtcdSnapshot => {
  const base = aSnapshot({
    status: { phase: 'Complete', artifact: { uri: 'x', checksum, etcdVersion: '3.6.16' } },
  });
  return {
    ...base,
    metadata: { ...base.metadata, name: 's', namespace: 'ns' },
    spec: { clusterRef: { name: 'db' }, destination, ...more },
  };
};
const like = aCluster({ spec: { replicas: 5, version: '3.6.16', suspend: true, storage: { size: '2Gi' } } });

describe('a snapshot is restored into a new cluster', () => {
  test('with the spec of the first, the exact object and its checksum', () => {
    const made = restoredCluster(stored({ s3: { endpoint: 'https://s3', bucket: 'b', key: 'p/' } }), 'db2', like, {});
    expect(made).toMatchObject({
      metadata: { name: 'db2', namespace: 'ns' },
      spec: {
        replicas: 5,
        version: '3.6.16',
        storage: { size: '2Gi' },
        bootstrap: { restore: { source: { s3: { bucket: 'b', key: 'p/s.db' }, checksum } } },
      },
    });
    expect(made).not.toHaveProperty('spec.suspend');
  });
  test.each([
    [{ gcs: { bucket: 'b' } }, { gcs: { bucket: 'b', key: 's.db' } }],
    [{ azure: { container: 'c', key: 'k' } }, { azure: { container: 'c', key: 'k/s.db' } }],
    [{ pvc: { claimName: 'v', subPath: 'd' } }, { pvc: { claimName: 'v', subPath: 'd/s.db' } }],
  ])('of %j', (destination, source) => {
    expect(restoredCluster(stored(destination), 'db2', like, {})).toMatchObject({
      spec: { bootstrap: { restore: { source } } },
    });
  });
  test('with the key that decrypts it, the suffixes of its object, and its folder', () => {
    const encryption = { keySecretRef: { name: 'key' } };
    const snapshot = stored({ pvc: { claimName: 'v' } }, { encryption, compression: 'Zstd', layout: 'ByCluster' });
    expect(restoredCluster(snapshot, 'db2', like, {})).toMatchObject({
      spec: { bootstrap: { restore: { encryption, source: { pvc: { subPath: 'ns/db/s.db.zst.enc' } } } } },
    });
  });
  test('a paused cluster does not make a paused one', () => {
    const paused = aCluster({ spec: { replicas: 0, version: '3.6.16' } });
    expect(restoredCluster(stored({ gcs: { bucket: 'b' } }), 'db2', paused, {})).not.toHaveProperty('spec.replicas');
  });
  test('of a cluster that is gone, the size of the volumes has to be stated', () => {
    const snapshot = stored({ gcs: { bucket: 'b' } });
    expect(restoredCluster(snapshot, 'db2', undefined, {})).toContain('pass --storage-size');
    expect(restoredCluster(snapshot, 'db2', undefined, { storageSize: '1Gi', replicas: 3 })).toMatchObject({
      spec: { version: '3.6.16', replicas: 3, storage: { size: '1Gi' } },
    });
  });
  test('a snapshot that is not complete is refused', () => {
    const failed = { ...stored({ gcs: { bucket: 'b' } }), status: { phase: 'Failed' } };
    expect(restoredCluster(failed, 'db2', like, {})).toBe('snapshot s is not complete: it cannot be restored');
  });
  test('certificates of the user have to be valid for the new name', () => {
    const tls = { client: { serverSecretRef: { name: 'server' } } };
    const secured = aCluster({ spec: { tls } });
    expect(restoreWarnings(secured)[0]).toContain('the certificates in server must be valid for *.');
    expect(restoreWarnings(like)).toEqual([]);
  });
});
