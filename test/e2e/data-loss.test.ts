/** Members that lose their data are replaced, one by one, and an empty volume never bootstraps a second cluster. */
import { expect, test } from 'vitest';
import { corruptDatabase, crash, emptyVolume, fillMemory } from '../../local/faults.ts';
import { aTenant, becomes, conditionOf, KIND, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster, IN_MEMORY } from '../support/journeys/serving.ts';

const names = async (tenant: Tenant): Promise<readonly string[]> =>
  (await tenant.list(MEMBER_KIND)).map((member) => member.metadata.name);
const aMember = async (tenant: Tenant): Promise<string> => (await names(tenant))[0] ?? '';
/** The member that bootstrapped the cluster. */
const seedOf = async (tenant: Tenant): Promise<string> =>
  (await tenant.list(MEMBER_KIND)).find((member) => member.spec['bootstrap'] === true)?.metadata.name ?? '';

/** Another member has replaced it; the others are the same. */
const isReplaced = async (tenant: Tenant, lost: string, before: readonly string[]): Promise<void> =>
  becomes(`${lost} to be replaced`, async () => {
    const now = await names(tenant);
    expect(now).not.toContain(lost);
    expect(now).toHaveLength(before.length);
    expect(before.filter((name) => !now.includes(name))).toEqual([lost]);
  });

test('a member in memory whose Pod is deleted is replaced', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'fleeting', { replicas: 3, ...IN_MEMORY });
  const [before, lost] = [await names(tenant), await aMember(tenant)];
  await tenant.kubectl('delete', 'pod', lost, '--wait=false');
  await isReplaced(tenant, lost, before);
  await endsWell(3);
});

test('a seed whose volume is emptied is replaced, and does not bootstrap a second cluster', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'emptied', { replicas: 3 });
  const [before, seed] = [await names(tenant), await seedOf(tenant)];
  await emptyVolume(tenant.cluster, tenant.namespace, `data-${seed}`);
  await crash(tenant.cluster, tenant.namespace, seed);
  await isReplaced(tenant, seed, before);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'a single member whose volume is emptied does not bootstrap a second cluster, and the status asks to keep the volume',
  async () => {
    const tenant = await aTenant();
    await tenant.create('alone');
    const before = await tenant.available('alone');
    const seed = await seedOf(tenant);
    await emptyVolume(tenant.cluster, tenant.namespace, `data-${seed}`);
    await crash(tenant.cluster, tenant.namespace, seed);
    await becomes('the loss to be reported', async () => {
      const cluster = await tenant.get(KIND, 'alone');
      expect(conditionOf(cluster, 'Available')).toMatchObject({ status: 'False', reason: 'NoReadableData' });
      expect(cluster.status?.clusterID).toBe(before.status?.clusterID);
    });
    await expect(tenant.etcdctl('alone', 'get', 'a')).rejects.toThrow();
  },
);

test.runIf(process.env['DEV_TEST_ALL'])('a member whose database file is corrupt is replaced', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'corrupt', { replicas: 3 });
  const [before, lost] = [await names(tenant), await aMember(tenant)];
  await corruptDatabase(tenant.cluster, tenant.namespace, lost);
  await isReplaced(tenant, lost, before);
  await endsWell(3);
});

test.runIf(process.env['DEV_TEST_ALL'])('a member whose volume in memory is full is replaced', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'full', { replicas: 3, ...IN_MEMORY });
  const [before, lost] = [await names(tenant), await aMember(tenant)];
  await fillMemory(tenant.cluster, tenant.namespace, lost);
  // the database grows only with writes
  for (let i = 0; i < 8; i++) await tenant.etcdctl('full', 'put', `large/${i}`, 'x'.repeat(100_000)).catch(() => {});
  await crash(tenant.cluster, tenant.namespace, lost);
  await isReplaced(tenant, lost, before);
  await endsWell(3);
});
