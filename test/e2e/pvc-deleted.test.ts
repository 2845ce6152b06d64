/** A user deletes PVCs of running members: the operator replaces the members while their Pods keep the data. */
import { expect, test } from 'vitest';
import { aTenant, becomes, conditionOf, KIND, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster } from '../support/journeys/serving.ts';

const names = async (tenant: Tenant, kind: string): Promise<readonly string[]> =>
  (await tenant.list(kind)).map(({ metadata }) => metadata.name).toSorted();

const deleteAllPvcs = (tenant: Tenant): Promise<string> =>
  tenant.kubectl('delete', 'pvc', '-l', 'etcd-operator.cozystack.io/cluster', '--wait=false');

test('all PVCs of a cluster are deleted: it is reported, every member is replaced, and no write is lost', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'spared', { replicas: 3 });
  const before = await names(tenant, MEMBER_KIND);
  const volumes = await names(tenant, 'pvc');
  await deleteAllPvcs(tenant);
  await becomes(
    'it to be reported',
    async () =>
      expect(conditionOf(await tenant.get(KIND, 'spared'), 'Degraded')).toMatchObject({
        status: 'True',
        reason: 'PVCTerminating',
      }),
    100,
  );
  await becomes('every member to be replaced', async () => {
    const now = await names(tenant, MEMBER_KIND);
    expect(now).toHaveLength(3);
    expect(now.filter((name) => before.includes(name))).toEqual([]);
  });
  await endsWell(3);
  expect((await names(tenant, 'pvc')).filter((name) => volumes.includes(name))).toEqual([]);
});

test('the only PVC is deleted, and the cluster is paused: it keeps its data', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'parked', { replicas: 1 });
  const [before] = await names(tenant, MEMBER_KIND);
  await deleteAllPvcs(tenant);
  await tenant.edit('parked', { replicas: 0 });
  await becomes('the cluster to be paused with another member', async () => {
    expect(await tenant.list('pods')).toEqual([]);
    expect(await names(tenant, MEMBER_KIND)).toHaveLength(1);
    expect(await names(tenant, MEMBER_KIND)).not.toContain(before);
  });
  await tenant.edit('parked', { replicas: 1 });
  await endsWell(1);
});
