/** Clusters of every size, and from each size to the next, while a client writes. */
import { expect, test } from 'vitest';
import { atRest, settled } from '../support/journeys/at-rest.ts';
import { aTenant, MEMBER_KIND } from '../support/journeys/journey.ts';
import { aServingCluster, IN_MEMORY } from '../support/journeys/serving.ts';

test('a cluster scales from one to three to five, and down to three and to one, without losing a write', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'accordion', { replicas: 1, ...IN_MEMORY });
  for (const replicas of [3, 5, 3, 1]) {
    await tenant.edit('accordion', { replicas });
    await settled(tenant, 'accordion');
    expect(await tenant.list(MEMBER_KIND)).toHaveLength(replicas);
  }
  await endsWell(1);
});

const comesUp = async (replicas: number): Promise<void> => {
  const tenant = await aTenant();
  await tenant.create('fresh', { replicas, ...IN_MEMORY });
  await atRest(tenant, 'fresh', replicas);
  expect(await tenant.etcdctl('fresh', 'put', 'a', '1')).toBe('OK');
};
test('a cluster of three becomes ready, and all members are voters', () => comesUp(3));
test.runIf(process.env['DEV_TEST_ALL'])('a cluster of five becomes ready, and all members are voters', () =>
  comesUp(5),
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'a name of 56 characters is not too long for any name that is derived from it',
  async () => {
    const tenant = await aTenant();
    const name = 'n'.repeat(56);
    await tenant.create(name, { replicas: 3, storage: { size: '256Mi' } });
    await atRest(tenant, name, 3);
  },
);
