import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('timestamps are read when the metrics are scraped, and what is deleted is not reported any more', async () => {
  const metrics = createMetrics();
  const name = 'etcd_operator_certificate_expiry_timestamp_seconds';
  let known = [{ namespace: 'ns', cluster: 'db', at: 1_800_000_000_000 }];
  metrics.timestamps({ name, help: 'x', labelNames: ['namespace', 'cluster'], read: () => known });
  const lines = async (): Promise<readonly string[]> =>
    (await metrics.registry.getSingleMetricAsString(name)).split('\n').filter((line) => line.startsWith(name));
  expect(await lines()).toEqual([`${name}{namespace="ns",cluster="db"} 1800000000`]);
  known = [];
  expect(await lines()).toEqual([]);
});
