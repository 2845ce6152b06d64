/** What users notice of the operator itself: it may be killed at any moment, and an idle one writes nothing. */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { installOperator, OPERATOR_NAMESPACE, operatorImage } from '../../../local/operator.ts';
import { LEASE_NAME } from '../../../src/api/names.ts';
import { ABOUT_DATA } from '../../support/about-data.ts';
import { quiet, settled } from '../../support/journeys/at-rest.ts';
import { aTenant, becomes, MEMBER_KIND, testCluster } from '../../support/journeys/journey.ts';
import { IN_NAMESPACE, killOperator, operatorPods } from '../../support/journeys/operator.ts';
import { aServingCluster, IN_MEMORY } from '../../support/journeys/serving.ts';

/** The number of writes for clusters since the operators started; their Leases and Events are not among them. */
async function operatorWrites(): Promise<number> {
  const cluster = await testCluster();
  const path = (pod: string): string => `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${pod}:8080/proxy/metrics`;
  const pages = await Promise.all((await operatorPods()).map((pod) => cluster.kubectl(['get', '--raw', path(pod)])));
  const counts = pages.flatMap((page) => [...page.matchAll(/^etcd_operator_writes_total\{.*\} (\d+)$/gm)]);
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

test('a cluster has one seed when the operator is killed during the bootstrap', async () => {
  const tenant = await aTenant();
  await tenant.create('survivor');
  await becomes('one member', async () => expect(await tenant.list(MEMBER_KIND)).toHaveLength(1), 50);
  await killOperator();

  await tenant.available('survivor');
  expect(await tenant.list(MEMBER_KIND)).toHaveLength(1);
  expect(await tenant.served('survivor', 'put', 'a', '1')).toBe('OK');
});

test('etcd serves while the operator is down, and what broke meanwhile is repaired when it is back', async () => {
  const tenant = await aTenant();
  await tenant.create('orphan');
  await tenant.available('orphan');
  await tenant.served('orphan', 'put', 'a', '1');
  const operator = ['-n', OPERATOR_NAMESPACE, 'scale', 'deployment/etcd-operator'];
  await tenant.cluster.kubectl([...operator, '--replicas=0']);
  await tenant.cluster.kubectl(['-n', OPERATOR_NAMESPACE, 'wait', '--for=delete', 'pod', '--all', '--timeout=60s']);
  expect(await tenant.etcdctl('orphan', 'get', 'a', '--print-value-only'), ABOUT_DATA).toBe('1');
  await tenant.kubectl('delete', 'pod', '--all', '--wait=true');

  await tenant.cluster.kubectl([...operator, '--replicas=1']);
  await becomes('the key to be there', async () =>
    expect(await tenant.etcdctl('orphan', 'get', 'a', '--print-value-only'), ABOUT_DATA).toBe('1'),
  );
});

test('nothing is written for an idle cluster whose client writes', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'calm', { replicas: 3, ...IN_MEMORY });
  const writesNothing = async (ms: number): Promise<void> => {
    const before = await operatorWrites();
    expect(before).toBeGreaterThan(0);
    await quiet(tenant, ms);
    expect(await operatorWrites()).toBe(before);
  };
  await becomes('objects of previous tests to be deleted', () => writesNothing(20_000));
  if (process.env['DEV_TEST_ALL']) await writesNothing(120_000);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'of two replicas one is active, and the other takes over when it is killed',
  async () => {
    const tenant = await aTenant();
    const image = await operatorImage();
    await installOperator(tenant.cluster, image, ['replicaCount=2']);
    onTestFinished(() => installOperator(tenant.cluster, image));
    const { endsWell } = await aServingCluster(tenant, 'relay', { replicas: 1, ...IN_MEMORY });
    const lease = [...IN_NAMESPACE, 'get', 'lease', LEASE_NAME, '-o', 'jsonpath={.spec.holderIdentity}'];
    const holder = await tenant.cluster.kubectl(lease);
    const acting = (await operatorPods()).find((pod) => holder.includes(pod));
    expect(acting).toBeDefined();
    await tenant.edit('relay', { replicas: 3 });
    await killOperator(acting);
    await settled(tenant, 'relay');
    expect(await tenant.cluster.kubectl(lease)).not.toBe(holder);
    await endsWell(3);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'an operator that is killed again and again scales a cluster up, repairs it and scales it down',
  async () => {
    const tenant = await aTenant();
    const { endsWell } = await aServingCluster(tenant, 'stubborn', { replicas: 1, ...IN_MEMORY });
    const lose = async (): Promise<unknown> =>
      tenant.kubectl('delete', 'pod', (await tenant.list('pods'))[0]?.metadata.name ?? '', '--wait=false');
    const changes = [
      () => tenant.edit('stubborn', { replicas: 3 }),
      lose,
      () => tenant.edit('stubborn', { replicas: 5 }),
      lose,
      () => tenant.edit('stubborn', { replicas: 3 }),
    ];
    for (const change of changes) {
      await change();
      await sleep(Math.random() * 4_000);
      await killOperator();
      await settled(tenant, 'stubborn');
    }
    await endsWell(3);
  },
  900_000,
);
