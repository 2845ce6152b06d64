/** What is left of a deleted cluster: nothing, or its volumes if the policy is Retain. */
import { expect, test } from 'vitest';
import { settled } from '../support/journeys/at-rest.ts';
import { aTenant, becomes, KIND, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { IN_MEMORY } from '../support/journeys/serving.ts';

const QUARANTINE = 'etcd-operator.cozystack.io/quarantine';

const nothingLeft = (tenant: Tenant, ...kinds: readonly string[]): Promise<void> =>
  becomes('nothing to be left', async () => {
    for (const kind of [KIND, MEMBER_KIND, 'pods', 'services', 'pdb', ...kinds])
      expect(await tenant.list(kind)).toEqual([]);
  });

test.each(process.env['DEV_TEST_ALL'] ? [1, 2, 3] : [2])(
  'a cluster that is deleted when it has %i of 3 members leaves nothing',
  async (count) => {
    const tenant = await aTenant();
    await tenant.create('early', { replicas: 3, ...IN_MEMORY });
    await becomes(
      'members to be created',
      async () => expect((await tenant.list(MEMBER_KIND)).length).toBeGreaterThanOrEqual(count),
      50,
    );
    await tenant.kubectl('delete', KIND, 'early', '--wait=true');
    await nothingLeft(tenant, 'pvc');
  },
);

test('Retain keeps the volumes of removed members and of the whole cluster, each with its label', async () => {
  const tenant = await aTenant();
  await tenant.create('kept', { replicas: 3, deletionPolicy: 'Retain' });
  await settled(tenant, 'kept');
  const all = (await tenant.list('pvc')).map((claim) => claim.metadata.name);
  await tenant.edit('kept', { replicas: 1 });
  await settled(tenant, 'kept');
  const [last] = await tenant.list(MEMBER_KIND);
  const labels = async (): Promise<Readonly<Record<string, string | undefined>>> =>
    Object.fromEntries(
      (await tenant.list('pvc')).map(({ metadata }) => [metadata.name, metadata.labels?.[QUARANTINE]]),
    );
  const lastClaim = `data-${last?.metadata.name}`;
  expect(await labels()).toEqual(
    Object.fromEntries(all.map((claim) => [claim, claim === lastClaim ? undefined : 'member-removed'])),
  );

  await tenant.kubectl('delete', KIND, 'kept', '--wait=true');
  await nothingLeft(tenant);
  await becomes('the volumes to be kept', async () =>
    expect(await labels()).toEqual(
      Object.fromEntries(all.map((claim) => [claim, claim === lastClaim ? 'cluster-deleted' : 'member-removed'])),
    ),
  );
  for (const claim of await tenant.list('pvc')) {
    expect(claim.metadata.deletionTimestamp).toBeUndefined();
    expect(claim.metadata.ownerReferences ?? []).toEqual([]);
  }
});
