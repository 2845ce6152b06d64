import { expect, test } from 'vitest';
import { type Backup, createMetrics, type Expiry } from './metrics.ts';

test('when certificates expire is told as it is known at that moment; what is gone is not told any more', async () => {
  const metrics = createMetrics();
  const name = 'etcd_operator_certificate_expiry_timestamp_seconds';
  let known: readonly Expiry[] = [
    { namespace: 'ns', cluster: 'db', role: 'peer', secret: 'mine', notAfter: 1_800_000_000_000 },
  ];
  metrics.expiryGauge(() => known);
  const lines = async (): Promise<readonly string[]> =>
    (await metrics.registry.getSingleMetricAsString(name)).split('\n').filter((line) => line.startsWith(name));
  expect(await lines()).toEqual([`${name}{namespace="ns",cluster="db",role="peer",secret="mine"} 1800000000`]);
  known = [];
  expect(await lines()).toEqual([]);
});

test('when the last backup of each schedule was is told, and that of a schedule that is gone is not', async () => {
  const metrics = createMetrics();
  const name = 'etcd_operator_last_backup_timestamp_seconds';
  let known: readonly Backup[] = [{ namespace: 'ns', cluster: 'db', schedule: 'nightly', at: 1_800_000_000_000 }];
  metrics.backupGauge(() => known);
  const lines = async (): Promise<readonly string[]> =>
    (await metrics.registry.getSingleMetricAsString(name)).split('\n').filter((line) => line.startsWith(name));
  expect(await lines()).toEqual([`${name}{namespace="ns",cluster="db",schedule="nightly"} 1800000000`]);
  known = [];
  expect(await lines()).toEqual([]);
});
