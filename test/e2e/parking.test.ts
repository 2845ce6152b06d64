/** replicas: 0 and back, with everything that clients know kept. */
import { expect, test } from 'vitest';
import { settled } from '../support/journeys/at-rest.ts';
import { aTenant, becomes, conditionOf, KIND, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster } from '../support/journeys/serving.ts';

const identities = async (tenant: Tenant): Promise<readonly string[]> =>
  (await tenant.list(MEMBER_KIND)).map(
    ({ metadata, status }) => `${metadata.name} ${metadata.uid} ${status?.memberID}`,
  );

test('a paused cluster has no Pods, and resumes with the same members, ids and data', async () => {
  const tenant = await aTenant();
  const { writer, endsWell } = await aServingCluster(tenant, 'bear', { replicas: 3 });
  const before = await identities(tenant);
  expect(before).toHaveLength(3);
  const volumes = (await tenant.list('pvc')).map((claim) => claim.metadata.uid);

  await tenant.edit('bear', { replicas: 0 });
  await becomes('the cluster to be paused', async () => {
    expect(await tenant.list('pods')).toEqual([]);
    const paused = await tenant.get(KIND, 'bear');
    expect(conditionOf(paused, 'Available')).toMatchObject({ status: 'False', reason: 'Paused' });
    expect(conditionOf(paused, 'Progressing')).toMatchObject({ status: 'False', reason: 'Paused' });
  });
  expect((await tenant.list('pvc')).map((claim) => claim.metadata.uid)).toEqual(volumes);

  await tenant.edit('bear', { replicas: 3 });
  await settled(tenant, 'bear');
  await writer.served();
  expect(await identities(tenant)).toEqual(before);
  expect((await tenant.list('pvc')).map((claim) => claim.metadata.uid)).toEqual(volumes);
  await endsWell(3);
});
