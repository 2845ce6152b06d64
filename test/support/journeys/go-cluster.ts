/** A running cluster as the Go operator of the same API leaves it: its objects, its latches, its Pods. */
import { API_VERSION, clusterToken } from '../../../src/api/names.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import {
  budget,
  claim,
  clusterStatus,
  type GoCluster,
  type Manifest,
  type MemberParts,
  memberObject,
  memberPod,
  memberStatus,
  type Owner,
  peerURL,
  STORAGE,
  services,
} from './go-manifests.ts';
import { becomes, KIND, MEMBER_KIND, type Tenant } from './journey.ts';

type Etcdctl = (...args: readonly string[]) => Promise<string>;

/** Writes the objects in the Go operator's order, and adds members to etcd as it would. No operator may run meanwhile. */
export async function asGoOperator(tenant: Tenant, cluster: GoCluster): Promise<void> {
  const { name, members, adopted } = cluster;
  const { namespace } = tenant;
  const [seed = ''] = members;
  const etcdctl: Etcdctl = async (...args) => (await tenant.kubectl('exec', seed, '--', 'etcdctl', ...args)).trim();
  await tenant.create(name, { replicas: members.length, storage: STORAGE });
  const owner = await ownerOf(tenant, KIND, 'EtcdCluster', name);
  await tenant.cluster.apply([...services(namespace, cluster, owner), budget(namespace, cluster, owner)]);
  const token = adopted ? `${name}-${namespace}` : clusterToken(namespace, name, owner.uid);
  for (const member of members) await join(tenant, cluster, { member, owner, token }, etcdctl);
  for (const member of members) {
    await tenant.kubectl('wait', '--for=condition=Ready', `pod/${member}`, '--timeout=120s');
    const podUID = (await tenant.get('pod', member)).metadata.uid;
    const id = await idOf(etcdctl, peerURL(namespace, cluster, member));
    await report(tenant, MEMBER_KIND, member, memberStatus(cluster, member, id, podUID));
  }
  if (adopted) await disown(tenant, adopted.service, members);
  const clusterID = /"ClusterID" : (\d+)/.exec(await etcdctl('member', 'list', '-w', 'fields'))?.[1] ?? '0';
  await report(tenant, KIND, name, clusterStatus(cluster, token, hexId(BigInt(clusterID))));
}

/** etcd-migrate makes the adopted members the owners of the old headless Service: it is deleted with the last of them. */
async function disown(tenant: Tenant, service: string, members: readonly string[]): Promise<void> {
  const owners = await Promise.all(members.map((member) => ownerOf(tenant, MEMBER_KIND, 'EtcdMember', member)));
  const ownerReferences = owners.flatMap(({ references }) =>
    references.map((reference) => ({ ...reference, controller: false, blockOwnerDeletion: false })),
  );
  await tenant.kubectl(
    'patch',
    'service',
    service,
    '--type=merge',
    '-p',
    JSON.stringify({ metadata: { ownerReferences } }),
  );
}

/** One member after the other: added as a learner, created, promoted. */
async function join(
  tenant: Tenant,
  cluster: GoCluster,
  { member, owner, token }: Pick<MemberParts, 'member' | 'owner' | 'token'>,
  etcdctl: Etcdctl,
): Promise<void> {
  const { members } = cluster;
  const { namespace } = tenant;
  const [url, isSeed] = [peerURL(namespace, cluster, member), member === members[0]];
  const patiently = (call: () => Promise<unknown>): Promise<unknown> => becomes('etcd to accept it', call, 1_000);
  if (!isSeed) await patiently(() => etcdctl('member', 'add', member, '--learner', `--peer-urls=${url}`));
  const present = members.slice(0, members.indexOf(member) + 1);
  const initialCluster = present
    .map((each) => `${each}=${peerURL(namespace, cluster, each)}`)
    .sort()
    .join(',');
  const parts = { member, owner, token, initialCluster, isSeed };
  await tenant.cluster.apply([memberObject(namespace, cluster, parts)]);
  const memberOwner = await ownerOf(tenant, MEMBER_KIND, 'EtcdMember', member);
  const pod = memberPod(namespace, cluster, { ...parts, owner: memberOwner });
  await tenant.cluster.apply([claim(namespace, cluster, member, memberOwner), pod]);
  if (isSeed) await tenant.kubectl('wait', '--for=condition=Ready', `pod/${member}`, '--timeout=120s');
  else await patiently(async () => etcdctl('member', 'promote', await idOf(etcdctl, url)));
}

const report = (tenant: Tenant, kind: string, name: string, status: Manifest): Promise<string> =>
  tenant.kubectl('patch', kind, name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));

async function idOf(etcdctl: Etcdctl, url: string): Promise<string> {
  const line = (await etcdctl('member', 'list')).split('\n').find((each) => each.includes(url));
  if (line === undefined) throw new Error(`etcd has no member at ${url}`);
  return (line.split(',')[0] ?? '').padStart(16, '0'); // etcdctl leaves leading zeros out
}

async function ownerOf(tenant: Tenant, resource: string, kind: string, name: string): Promise<Owner> {
  const { uid } = (await tenant.get(resource, name)).metadata;
  return {
    uid,
    references: [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true }],
  };
}
