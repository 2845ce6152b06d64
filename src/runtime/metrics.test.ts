import { expect, test } from 'vitest';
import { createMetrics, type Expiry } from './metrics.ts';

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
