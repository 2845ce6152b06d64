/** What users notice of the operator itself: it may die at any moment, and an idle one writes nothing. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { OPERATOR_NAMESPACE } from '../../../local/operator.ts';
import { aTenant, becomes, KIND, MEMBER_KIND, testCluster } from '../../support/journey.ts';

const killOperator = async (): Promise<void> => {
  const cluster = await testCluster();
  await cluster.kubectl(['-n', OPERATOR_NAMESPACE, 'delete', 'pod', '--all', '--grace-period=0', '--force']);
};

test('a cluster that is being made while the operator is killed comes up with one seed', async () => {
  const tenant = await aTenant();
  await tenant.create('survivor');
  await becomes('one member', async () => expect(await tenant.list(MEMBER_KIND)).toHaveLength(1), 50);
  await killOperator();

  await tenant.available('survivor');
  expect(await tenant.list(MEMBER_KIND)).toHaveLength(1);
  expect(await tenant.etcdctl('survivor', 'put', 'a', '1')).toBe('OK');
});

test('etcd serves while the operator is away, and what happened meanwhile is mended when it is back', async () => {
  const tenant = await aTenant();
  await tenant.create('orphan');
  await tenant.available('orphan');
  await tenant.etcdctl('orphan', 'put', 'a', '1');
  const operator = ['-n', OPERATOR_NAMESPACE, 'scale', 'deployment/etcd-operator'];
  await tenant.cluster.kubectl([...operator, '--replicas=0']);
  await tenant.cluster.kubectl(['-n', OPERATOR_NAMESPACE, 'wait', '--for=delete', 'pod', '--all', '--timeout=60s']);
  expect(await tenant.etcdctl('orphan', 'get', 'a', '--print-value-only')).toBe('1');
  await tenant.kubectl('delete', 'pod', '--all', '--wait=true');

  await tenant.cluster.kubectl([...operator, '--replicas=1']);
  await becomes('the key to be there', async () =>
    expect(await tenant.etcdctl('orphan', 'get', 'a', '--print-value-only')).toBe('1'),
  );
});

test('nothing is written for a cluster at rest', async () => {
  const tenant = await aTenant();
  await tenant.create('calm');
  await tenant.available('calm');
  const versions = async (): Promise<readonly string[]> =>
    (await Promise.all([KIND, MEMBER_KIND, 'pods', 'pvc', 'services'].map((kind) => tenant.list(kind))))
      .flat()
      .map((object) => `${object.metadata.name} ${object.metadata.resourceVersion}`);
  await sleep(3_000); // the last events of the start
  const before = await versions();
  await sleep(15_000);
  expect(await versions()).toEqual(before);
});
