/** EtcdDefrag and EtcdDefragPolicy as their users write them: every member gives free space back to its disk, while clients write. */
import { expect, onTestFinished, test } from 'vitest';
import { ABOUT_DATA } from '../support/about-data.ts';
import { UserClient } from '../support/etcd-client.ts';
import { watchPods } from '../support/journeys/away.ts';
import { type AnObject, aTenant, becomes, conditionOf, KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster } from '../support/journeys/serving.ts';
import { serviceIp } from '../support/journeys/writer.ts';

const DEFRAG_KIND = 'etcddefrags.etcd-operator.cozystack.io';
const POLICY_KIND = 'etcddefragpolicies.etcd-operator.cozystack.io';
const MIB = 1024 ** 2;

interface Outcome {
  readonly name: string;
  readonly outcome: string;
  readonly dbSizeBefore: number;
  readonly dbSizeAfter: number;
}
const statusOf = ({ status }: AnObject) =>
  (status ?? {}) as { readonly phase?: string; readonly members?: readonly Outcome[]; readonly completedAt?: string };

/** Leaves most of the database free: keys are written, deleted and compacted. */
async function leaveFreeSpace(tenant: Tenant, name: string, mebibytes: number): Promise<void> {
  const client = new UserClient(() => performance.now());
  onTestFinished(() => client.close());
  const ask = {
    endpoint: `http://${await serviceIp(tenant, name)}:2379`,
    timeoutMs: 10_000,
    access: { cluster: 'garbage' },
  };
  for (let i = 0; i < mebibytes; i++) {
    const put = await client.put(ask, `garbage/${i}`, 'x'.repeat(MIB));
    if (!put.ok) throw new Error(put.error.message);
  }
  await tenant.etcdctl(name, 'del', '--prefix', 'garbage/');
  const status = JSON.parse(await tenant.etcdctl(name, 'endpoint', 'status', '-w', 'json')) as readonly {
    readonly Status: { readonly header: { readonly revision: number } };
  }[];
  await tenant.etcdctl(name, 'compact', String(status[0]?.Status.header.revision));
}

const create = (
  tenant: Tenant,
  kind: string,
  name: string,
  spec: Readonly<Record<string, unknown>>,
): Promise<unknown> =>
  tenant.cluster.kubectl(
    ['create', '-f', '-'],
    JSON.stringify({
      apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
      kind,
      metadata: { name, namespace: tenant.namespace },
      spec,
    }),
  );

test('an EtcdDefrag gives free space back on every member, the leader last, and no Pod restarts', async () => {
  const tenant = await aTenant();
  const { cluster, endsWell } = await aServingCluster(tenant, 'full', { replicas: 3 });
  await leaveFreeSpace(tenant, 'full', 40);
  const watched = watchPods(tenant, 'full');
  await create(tenant, 'EtcdDefrag', 'now', { clusterRef: { name: 'full' }, rule: { freeSpaceAbove: '20Mi' } });
  const done = await becomes('the EtcdDefrag to be complete', async () => {
    const defrag = await tenant.get(DEFRAG_KIND, 'now');
    expect(statusOf(defrag).phase).toBe('Complete');
    return defrag;
  });
  const { members = [] } = statusOf(done);
  expect(members.map(({ outcome }) => outcome)).toEqual(['Defragmented', 'Defragmented', 'Defragmented']);
  for (const { dbSizeBefore, dbSizeAfter } of members) {
    expect(dbSizeBefore).toBeGreaterThan(30 * MIB);
    expect(dbSizeAfter).toBeLessThan(20 * MIB);
  }
  expect(conditionOf(done, 'DefragChecked')).toMatchObject({ status: 'True', reason: 'Complete' });
  const { created } = await watched.stop();
  expect(created).toHaveLength(3);
  const after = await endsWell(3);
  expect(after.status?.clusterID, ABOUT_DATA).toBe(cluster.status?.clusterID);
});

test('an EtcdDefragPolicy starts an EtcdDefrag at its time', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'nightly', { replicas: 3 });
  await leaveFreeSpace(tenant, 'nightly', 40);
  await create(tenant, 'EtcdDefragPolicy', 'minutely', {
    clusterRef: { name: 'nightly' },
    schedule: '* * * * *',
    rule: { freeSpaceAbove: '20Mi' },
  });
  await becomes('a run of the policy to be complete', async () => {
    const runs = await tenant.list(DEFRAG_KIND);
    expect(runs.some((run) => statusOf(run).members?.some(({ outcome }) => outcome === 'Defragmented'))).toBe(true);
    expect(runs.map((run) => statusOf(run).phase)).toContain('Complete');
  });
  await tenant.kubectl('patch', POLICY_KIND, 'minutely', '--type=merge', '-p', '{"spec":{"suspend":true}}');
  expect(conditionOf(await tenant.get(KIND, 'nightly'), 'Available')).toMatchObject({ status: 'True' });
  await endsWell(3);
});
