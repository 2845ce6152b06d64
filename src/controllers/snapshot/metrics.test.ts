import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { condition } from '../../../test/support/builders/builders.ts';
import { putInCache } from '../../../test/support/builders/ports.ts';
import { aSnapshot } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { etcdSnapshots } from '../../api/names.ts';
import { Store } from '../../kube/store.ts';
import { countPendingCopies, countSnapshots } from './controller.ts';

test('the first failed snapshot is an increase: every reason is counted from zero', async () => {
  const [registry, snapshots] = [new Registry(), new Store<EtcdSnapshot>(etcdSnapshots, [])];
  countSnapshots(registry, snapshots);
  const name = 'etcd_operator_snapshots_total';
  const counted = async (phase: string, reason: string): Promise<string | undefined> =>
    (await registry.getSingleMetricAsString(name))
      .split('\n')
      .find((line) => line.startsWith(`${name}{phase="${phase}",reason="${reason}"}`))
      ?.split(' ')[1];
  expect(await counted('Failed', 'AccessDenied')).toBe('0');
  expect(await counted('Failed', 'ClusterNotFound')).toBe('0');
  expect(await counted('Complete', 'SnapshotStored')).toBe('0');
  putInCache(snapshots, aSnapshot({ status: { phase: 'Started' } }));
  const conditions = [condition('Ready', 'False', 'AccessDenied')];
  putInCache(snapshots, aSnapshot({ status: { phase: 'Failed', conditions } }));
  putInCache(snapshots, aSnapshot({ status: { phase: 'Failed', conditions } }));
  expect(await counted('Failed', 'AccessDenied')).toBe('1');
});

test('copies that are still to be made are counted by cluster, and a cluster whose copies are all made has 0', async () => {
  const [registry, snapshots] = [new Registry(), new Store<EtcdSnapshot>(etcdSnapshots, [])];
  countPendingCopies(registry, snapshots);
  const name = 'etcd_operator_copies_pending';
  const sample = `${name}{namespace="ns",cluster="db"}`;
  expect(await registry.getSingleMetricAsString(name)).not.toContain(sample);
  const copyTo = { destination: { pvc: { claimName: 'second' } } };
  const status = { phase: 'Complete', artifact: { uri: 's3://b/x' } };
  putInCache(snapshots, aSnapshot({ spec: { copyTo }, status }));
  expect(await registry.getSingleMetricAsString(name)).toContain(`${sample} 1`);
  putInCache(snapshots, aSnapshot({ spec: { copyTo }, status: { ...status, copy: { uri: 'file:///x' } } }));
  expect(await registry.getSingleMetricAsString(name)).toContain(`${sample} 0`);
});
