/** How every journey ends: the status reports that all is well, etcd and Kubernetes agree, and then nothing is written any more. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { MANAGER } from '../../../src/api/names.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import { type AnObject, becomes, conditionOf, KIND, MEMBER_KIND, type Tenant } from './journey.ts';

const OURS = [KIND, MEMBER_KIND, 'pods', 'pvc', 'services', 'pdb', 'secrets'];

/** The operator coalesces status changes that are not conditions for two seconds, and for ten while its queue is busy. */
const QUIET_MS = 15_000;

/** Waits until the cluster is as specified, and verifies that nothing is written from then on. */
export async function atRest(tenant: Tenant, name: string, voters: number): Promise<AnObject> {
  await settled(tenant, name);
  await agreed(tenant, name, voters);
  await becomes('fifteen seconds without a write', () => quiet(tenant, QUIET_MS));
  return tenant.get(KIND, name);
}

/** The status reports that the spec is reached. */
export const settled = (tenant: Tenant, name: string): Promise<AnObject> =>
  becomes('the status to report that all is well', async () => {
    const cluster = await tenant.get(KIND, name);
    expect(conditionOf(cluster, 'Available')).toMatchObject({ status: 'True', reason: 'QuorumHealthy' });
    const observedGeneration = cluster.metadata.generation;
    expect(conditionOf(cluster, 'Progressing')).toMatchObject({ status: 'False', observedGeneration });
    expect(conditionOf(cluster, 'Degraded')).toMatchObject({ status: 'False' });
    return cluster;
  });

interface EtcdMembers {
  readonly members: readonly { readonly name: string; readonly isLearner?: boolean }[];
}

/** One etcd cluster, whose members are the EtcdMembers; all of them are voters and behind the client Service. */
export async function agreed(tenant: Tenant, name: string, voters: number): Promise<void> {
  const selection = [`etcd-operator.cozystack.io/cluster=${name}`];
  await becomes('no object to be terminating', async () => {
    const objects = (await Promise.all(OURS.map((kind) => tenant.list(kind, ...selection)))).flat();
    const terminating = objects.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect(terminating.map(({ metadata }) => metadata.name)).toEqual([]);
  });
  // A new voter is added to the client Service a moment later, and the queried member may not know of it yet.
  await becomes('etcd and Kubernetes to agree', async () => {
    const cluster = await tenant.get(KIND, name);
    const names = (await tenant.list(MEMBER_KIND, ...selection)).map((member) => member.metadata.name).sort();
    expect(names).toHaveLength(voters);
    const { members } = JSON.parse(await tenant.etcdctl(name, 'member', 'list', '-w', 'json')) as EtcdMembers;
    expect(members.map((member) => member.name).sort()).toEqual(names);
    expect(members.filter((member) => member.isLearner)).toEqual([]);
    const served = await tenant.list('pods', ...selection, 'etcd-operator.cozystack.io/role=voter');
    expect(served.map((pod) => pod.metadata.name).sort()).toEqual(names);
    const answers = await tenant.etcdctl(name, 'endpoint', 'status', '--cluster', '-w', 'json');
    const ids = [...answers.matchAll(/"cluster_id":(\d+)/g)].map(([, id]) => hexId(BigInt(id ?? 0))); // too long for JSON.parse
    expect(ids).toEqual(names.map(() => cluster.status?.clusterID));
  });
}

/** The operator has written none of the tenant's objects, and none was created or deleted. What kubelets report is not its doing. */
export async function quiet(tenant: Tenant, ms: number): Promise<void> {
  const written = async (): Promise<readonly string[]> =>
    (await Promise.all(OURS.map((kind) => tenant.list(kind)))).flat().map(({ metadata }) => {
      const ours = metadata.managedFields?.filter(({ manager }) => manager === MANAGER) ?? [];
      return `${metadata.name} ${metadata.uid} ${ours.map(({ subresource, time }) => `${subresource ?? ''} ${time}`).join()}`;
    });
  const before = await written();
  await sleep(ms);
  expect(await written()).toEqual(before);
}
