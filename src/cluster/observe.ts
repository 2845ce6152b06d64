/** Gathers the facts for one cluster: Kubernetes from the cache, etcd asked now. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { budgetName, CLIENT_PORT, CLUSTER_LABEL, clientServiceName, headlessServiceName, hexId } from '../api/names.ts';
import { controllerOf, type Holding, holding } from '../api/ownership.ts';
import { isPodReady } from '../api/pod.ts';
import type { ImagePolicy } from '../api/security.ts';
import { type EtcdPort, endpointOf, type MemberStatus } from '../etcd/client.ts';
import type { Pod, PodDisruptionBudget, Service } from '../gen/kube.ts';
import type { Client } from '../kube/client.ts';
import { refKey } from '../kube/object.ts';
import { podDisruptionBudgets, services } from '../kube/resources.ts';
import type { Store } from '../kube/store.ts';
import {
  type EtcdView,
  identity,
  type MemberView,
  type Observed,
  type PodView,
  type SelfReport,
  seedName,
  wantsBudget,
} from './observed.ts';

export interface ClusterPorts {
  readonly client: Client;
  readonly etcd: EtcdPort;
  readonly now: () => number;
  readonly clusters: Store<EtcdCluster>;
  readonly members: Store<EtcdMember>;
  readonly services: Store<Service>;
  readonly pods: Store<Pod>;
  readonly budgets: Store<PodDisruptionBudget>;
  readonly images: ImagePolicy;
}

const ASK_TIMEOUT_MS = 2_000;

export async function observe(
  ports: ClusterPorts,
  key: string,
  signal: AbortSignal,
  refusal: string | undefined,
): Promise<Observed | undefined> {
  const cluster = ports.clusters.get(key);
  if (!cluster) return undefined;
  const { name, namespace, uid } = identity(cluster);
  const found = memberViews(ports, cluster);
  const reachable = speaksPlainly(cluster) ? found : [];
  ports.etcd.retain(key, reachable.flatMap(endpointsOf));
  const [headless, client, budget, etcd, members] = await Promise.all([
    heldService(ports, cluster, headlessServiceName(name), signal),
    heldService(ports, cluster, clientServiceName(name), signal),
    heldBudget(ports, cluster, signal),
    askEtcd(ports.etcd, key, reachable, signal),
    speaksPlainly(cluster) ? askEach(ports.etcd, key, cluster, found, signal) : found,
  ]);
  const seed = holding(ports.members.get(refKey({ namespace, name: seedName(cluster) })), uid);
  const { images } = ports;
  return { now: ports.now(), refusal, cluster, services: { headless, client }, budget, seed, members, etcd, images };
}

/** Members behind TLS are not asked until we can: a failed handshake would be told as a member that does not answer. */
const speaksPlainly = (cluster: EtcdCluster): boolean => cluster.spec.tls?.client === undefined;

function memberViews(ports: ClusterPorts, cluster: EtcdCluster): readonly MemberView[] {
  const { name, namespace, uid } = identity(cluster);
  return ports.members
    .labelled(namespace, CLUSTER_LABEL, name)
    .filter((m) => controllerOf(m)?.uid === uid)
    .map((object) => ({
      object,
      pod: podView(ports.pods.get(refKey({ namespace, name: object.metadata.name ?? '' })), object),
    }));
}

/** Only a Pod that this very member controls: another one of the same name could be anything. */
function podView(pod: Pod | undefined, member: EtcdMember): PodView {
  if (!pod || controllerOf(pod)?.uid !== member.metadata.uid) return { is: 'absent' };
  const { podIP, startTime } = pod.status ?? {};
  return {
    is: 'present',
    ready: isPodReady(pod),
    ...(podIP !== undefined && { ip: podIP }),
    ...(startTime !== undefined && { startedAt: Date.parse(startTime) }),
  };
}

/** The cache holds only what carries our label: before a name counts as free, the server is asked. */
async function heldService(
  ports: ClusterPorts,
  cluster: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<Holding<Service>> {
  const { namespace, uid } = identity(cluster);
  const ref = { namespace, name };
  return holding(ports.services.get(refKey(ref)) ?? (await ports.client.get(services, ref, signal)), uid);
}

/** Looked for only where there is something to protect. */
async function heldBudget(
  ports: ClusterPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<Holding<PodDisruptionBudget>> {
  const { name, namespace, uid } = identity(cluster);
  const ref = { namespace, name: budgetName(name) };
  const cached = ports.budgets.get(refKey(ref));
  const look = cached === undefined && cluster.status?.clusterID !== undefined && wantsBudget(cluster);
  return holding(look ? await ports.client.get(podDisruptionBudgets, ref, signal) : cached, uid);
}

/** Every member of a cluster that exists, about itself. Only what speaks for this cluster is believed. */
function askEach(
  etcd: EtcdPort,
  key: string,
  cluster: EtcdCluster,
  members: readonly MemberView[],
  signal: AbortSignal,
): Promise<readonly MemberView[]> {
  const ours = cluster.status?.clusterID;
  const ask = async (m: MemberView): Promise<MemberView> => {
    const [endpoint] = endpointsOf(m);
    if (ours === undefined || m.pod.is === 'absent' || !m.pod.ready || endpoint === undefined) return m;
    const answer = await etcd.status({ endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access: { cluster: key } });
    if (!answer.ok || hexId(answer.value.clusterId) !== ours) return m;
    return { ...m, self: selfReport(answer.value) };
  };
  return Promise.all(members.map(ask));
}

const selfReport = (s: MemberStatus): SelfReport => ({
  id: hexId(s.memberId),
  clusterID: hexId(s.clusterId),
  leader: s.leader === 0n ? undefined : hexId(s.leader),
  isLearner: s.isLearner,
  version: s.version,
  alarms: alarmsOf(s.errors, s.memberId),
  databaseBytes: s.dbSize,
});

/** Every member tells the alarms of all, in the text form of the message. */
const alarmsOf = (errors: readonly string[], id: bigint): readonly string[] =>
  errors.flatMap((text) => {
    const found = /memberID:(\d+)\s+alarm:(\w+)/.exec(text);
    return found && found[1] === String(id) && found[2] ? [found[2]] : [];
  });

const endpointsOf = ({ pod }: MemberView): readonly string[] =>
  pod.is === 'present' && pod.ip !== undefined ? [endpointOf(pod.ip, CLIENT_PORT)] : [];

/** Voters first; the first member that agrees with a quorum speaks for all. */
async function askEtcd(
  etcd: EtcdPort,
  key: string,
  members: readonly MemberView[],
  signal: AbortSignal,
): Promise<EtcdView> {
  const order = [...members].sort(
    (a, b) => Number(b.object.status?.isVoter === true) - Number(a.object.status?.isVoter === true),
  );
  let view: EtcdView = { is: 'notAsked' };
  for (const endpoint of order.flatMap(endpointsOf)) {
    const ask = { endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access: { cluster: key } };
    const answer = await etcd.memberList({ ...ask, linearizable: true });
    if (!answer.ok) {
      view = { is: 'silent', why: answer.error.message };
      continue;
    }
    const { clusterId, members: entries } = answer.value;
    return { is: 'answers', clusterID: hexId(clusterId), members: entries.map((e) => ({ ...e, id: hexId(e.id) })) };
  }
  return view;
}
