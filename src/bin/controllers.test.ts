import { expect, test } from 'vitest';
import { condition } from '../../test/support/builders/builders.ts';
import { hear } from '../../test/support/builders/ports.ts';
import { aSnapshot } from '../../test/support/builders/snapshot.ts';
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import { etcdSnapshots } from '../api/names.ts';
import { Store } from '../kube/store.ts';
import { createMetrics } from '../runtime/metrics.ts';
import { countSnapshots } from './controllers.ts';

test('a first failure is an increase: how often snapshots have failed is told before any has', async () => {
  const [metrics, snapshots] = [createMetrics(), new Store<EtcdSnapshot>(etcdSnapshots, [])];
  countSnapshots({ snapshots }, metrics);
  const name = 'etcd_operator_snapshots_total';
  const told = async (phase: string, reason: string): Promise<string | undefined> =>
    (await metrics.registry.getSingleMetricAsString(name))
      .split('\n')
      .find((line) => line.startsWith(`${name}{phase="${phase}",reason="${reason}"}`))
      ?.split(' ')[1];
  expect(await told('Failed', 'AccessDenied')).toBe('0');
  expect(await told('Failed', 'ClusterNotFound')).toBe('0');
  expect(await told('Complete', 'SnapshotStored')).toBe('0');
  hear(snapshots, aSnapshot({ status: { phase: 'Started' } }));
  const conditions = [condition('Ready', 'False', 'AccessDenied')];
  hear(snapshots, aSnapshot({ status: { phase: 'Failed', conditions } }));
  hear(snapshots, aSnapshot({ status: { phase: 'Failed', conditions } }));
  expect(await told('Failed', 'AccessDenied')).toBe('1');
});
