/** A running cluster as the Go operator leaves it, in the world of integration tests: its objects, its latches, its etcd processes. */
import { API_VERSION, clusterToken } from '../../../src/api/names.ts';
import type { Access } from '../../../src/etcd/client.ts';
import type { Result } from '../../../src/etcd/errors.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import type { Membership } from '../../../src/etcd/members.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import {
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  services as serviceKind,
} from '../../../src/kube/resources.ts';
import {
  budget,
  claim,
  clientScheme,
  clusterStatus,
  type GoCluster,
  type Manifest,
  memberObject,
  memberPod,
  memberStatus,
  type Owner,
  peerURL,
  STORAGE,
  services,
  VERSION,
} from '../journeys/go-manifests.ts';
import { eventually } from './processes.ts';
import { clusters, members, type World } from './world.ts';

const PATIENCE = { timeoutMs: 60_000 };

export interface GoWorld {
  readonly world: World;
  readonly namespace: string;
  readonly cluster: GoCluster;
  /** How the members are reached, with TLS or auth. */
  readonly access?: (member: string) => Access;
}

const create = (world: World, resource: Resource, manifest: Manifest): Promise<KubeObject> =>
  world.admin.create(resource, manifest as unknown as KubeObject);

const ownerOf = (kind: string, { metadata: { name = '', uid = '' } }: KubeObject): Owner => ({
  uid,
  references: [{ apiVersion: API_VERSION, kind, name, uid, controller: true, blockOwnerDeletion: true }],
});

const askAt = ({ world, namespace, cluster, access }: GoWorld, member: string) => ({
  endpoint: `${clientScheme(cluster)}://${world.kubelet.addressOf(namespace, member)}:2379`,
  timeoutMs: 5_000,
  ...(access && { access: access(member) }),
});

const patiently = <T>(what: string, call: () => Promise<Result<T>>): Promise<T> =>
  eventually(
    what,
    async () => {
      const answer = await call();
      if (!answer.ok) throw new Error(answer.error.message);
      return answer.value;
    },
    PATIENCE,
  );

/** No operator may run meanwhile. `spec`: further fields of the EtcdCluster, which its members do not have unless they are in `members`. */
export async function leftByGo(go: GoWorld, spec: Manifest = {}, status: Manifest = {}): Promise<void> {
  const { world, namespace, cluster } = go;
  const { name, members: names, adopted } = cluster;
  const storage = cluster.memory ? { ...STORAGE, medium: 'Memory' } : STORAGE;
  const object = await create(world, clusters, {
    apiVersion: API_VERSION,
    kind: 'EtcdCluster',
    metadata: { name, namespace },
    spec: { replicas: names.length, version: VERSION, storage, ...spec },
  });
  const owner = ownerOf('EtcdCluster', object);
  for (const service of services(namespace, cluster, owner)) await create(world, serviceKind, service);
  if (!adopted) await create(world, podDisruptionBudgets, budget(namespace, cluster, owner));
  const token = adopted ? `${name}-${namespace}` : clusterToken(namespace, name, owner.uid);
  await world.kubelet.expect(names.map((each) => ({ name: each, service: adopted?.service ?? name, namespace })));
  // The StatefulSet has started all members at once; the Go operator adds one after the other.
  if (adopted) for (const member of names) await start(go, member, { token, owner, present: names, isSeed: true });
  else for (const member of names) await join(go, member, token, owner);
  const list = await patiently('the members', async () => listAt(go, names[0] ?? ''));
  for (const member of names) {
    const pod = await ready(go, member);
    const id = list.members.find((entry) => entry.name === member)?.id ?? 0n;
    await report(world, members, namespace, member, memberStatus(cluster, member, hexId(id), pod.metadata.uid ?? ''));
  }
  await report(world, clusters, namespace, name, {
    ...clusterStatus(cluster, token, hexId(list.clusterId)),
    ...status,
  });
}

const listAt = (go: GoWorld, member: string): Promise<Result<Membership>> =>
  go.world.etcd.members.list(askAt(go, member), { linearizable: true });

const ready = ({ world, namespace }: GoWorld, member: string): Promise<KubeObject> =>
  eventually(
    `Pod ${member} to be ready`,
    async () => {
      const pod = await world.admin.get(pods, { namespace, name: member });
      return pod?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
        ? pod
        : undefined;
    },
    PATIENCE,
  );

const report = (world: World, kind: Resource, namespace: string, name: string, status: Manifest): Promise<unknown> =>
  world.admin.patch(kind, { namespace, name }, { status }, { subresource: 'status' });

interface Start {
  readonly token: string;
  readonly owner: Owner;
  readonly present: readonly string[];
  readonly isSeed: boolean;
}

async function start(go: GoWorld, member: string, { token, owner, present, isSeed }: Start): Promise<void> {
  const { world, namespace, cluster } = go;
  const urls = present.map((each) => `${each}=${peerURL(namespace, cluster, each)}`);
  const parts = { member, owner, token, initialCluster: urls.sort().join(','), isSeed };
  const object = await create(world, members, memberObject(namespace, cluster, parts));
  const memberOwner = ownerOf('EtcdMember', object);
  if (!cluster.memory) await create(world, persistentVolumeClaims, claim(namespace, cluster, member, memberOwner));
  await create(world, pods, memberPod(namespace, cluster, { ...parts, owner: memberOwner }));
}

async function join(go: GoWorld, member: string, token: string, owner: Owner): Promise<void> {
  const { cluster, namespace, world } = go;
  const names = cluster.members;
  const [seed = ''] = names;
  const isSeed = member === seed;
  const url = peerURL(namespace, cluster, member);
  if (!isSeed)
    await patiently(`${member} to be added`, () => world.etcd.members.add(askAt(go, seed), [url], { learner: true }));
  await start(go, member, { token, owner, present: names.slice(0, names.indexOf(member) + 1), isSeed });
  await ready(go, isSeed ? seed : member).catch(() => undefined); // a learner is not ready before it votes, in some versions
  if (isSeed) return;
  const list = await patiently('the learner', () => listAt(go, seed));
  const id = list.members.find(({ peerURLs }) => peerURLs.includes(url))?.id ?? 0n;
  await patiently(`${member} to vote`, () => world.etcd.members.promote(askAt(go, seed), id));
}
