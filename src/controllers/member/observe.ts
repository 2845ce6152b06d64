/** Observes one member: Kubernetes objects from the cache, etcd by a request in this reconcile. */

import type { SecretCache } from '../../access/secret-cache.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, etcdClusters, MEMBER_UID_ANNOTATION, volumeClaimName } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import { isObjectName } from '../../api/text.ts';
import { memberEndpoint, memberHost } from '../../domain/member-address.ts';
import { isOutOfService, SELECTED_NODE } from '../../domain/node.ts';
import { controllerOf, type Holding, holding, isMemberOf } from '../../domain/ownership.ts';
import { isPodOver, isPodReady } from '../../domain/pod.ts';
import { OPEN, type Tenancy, withoutDenied } from '../../domain/tenancy.ts';
import { ASK_TIMEOUT_MS } from '../../domain/timing.ts';
import { askMember } from '../../etcd/ask-member.ts';
import type { Access, EtcdPort } from '../../etcd/client.ts';
import { hexId } from '../../etcd/ids.ts';
import type { Node, NodeSelectorRequirement, PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { isForbidden } from '../../kube/errors.ts';
import { type KubeObject, type Ref, refKey } from '../../kube/object.ts';
import { persistentVolumes } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import type { Memory } from '../../runtime/plan.ts';
import type { DeletedPolicies } from './observe-deleted-clusters.ts';
import { isListed, type NodeView, type Observed, type PeersView, type SelfView } from './observed.ts';

export interface MemberPorts {
  readonly client: Client;
  readonly etcd: EtcdPort;
  readonly now: () => number;
  readonly images: ImagePolicy;
  /** Absent: the defaults. */
  readonly tenancy?: Tenancy;
  readonly credentials: SecretCache;
  readonly clusters: Store<EtcdCluster>;
  readonly deletedPolicies: DeletedPolicies;
  readonly members: Store<EtcdMember>;
  readonly pods: Store<Pod>;
  readonly volumes: Store<PersistentVolumeClaim>;
  readonly nodes: Store<Node>;
  readonly nodeLostAfterMs: number;
  /** For how long this process has observed the present state of a key. */
  readonly observedMs: (key: string, state: string | undefined) => number;
}

export async function observe(
  ports: MemberPorts,
  key: string,
  signal: AbortSignal,
  memory: Memory,
): Promise<Observed | undefined> {
  const found = ports.members.get(key);
  if (!found) return undefined;
  const { object: member } = withoutDenied(found, ports.tenancy ?? OPEN);
  const { namespace = '', name = '', uid = '' } = member.metadata;
  const [pod, volume] = await Promise.all([
    getOrFetch(ports, ports.pods, { namespace, name }, signal),
    member.spec.storage.medium === 'Memory'
      ? undefined
      : getOrFetch(ports, ports.volumes, { namespace, name: volumeClaimName(name) }, signal),
  ]);
  const held = holding(pod, uid);
  const heldVolume = volumeOf(volume, uid);
  const claim = heldVolume.is === 'ours' ? heldVolume.object : undefined;
  const nodeName = held.is === 'ours' ? held.object.spec?.nodeName : undefined;
  const node = await (nodeName === undefined ? nodeOfVolume(ports, claim, signal) : nodeOf(ports, nodeName, signal));
  const doubtful = node.is === 'gone' || (node.is === 'present' && node.outOfService);
  const deleting = member.metadata.deletionTimestamp !== undefined;
  const cluster = await ownCluster(ports, member, { creates: held.is === 'absent', deleting }, signal);
  const [volumeOnNode, etcd, peers] = await Promise.all([
    doubtful && claim ? isOnNode(ports, claim, node.name, signal) : false,
    held.is === 'ours' ? askSelf(ports, member, cluster, held.object, signal) : ({ is: 'notAsked' } as const),
    deleting ? askPeers(ports, member, cluster, signal) : ({ is: 'none' } as const),
  ]);
  const { images, nodeLostAfterMs } = ports;
  return {
    now: ports.now(),
    memory,
    member,
    cluster,
    policy: deleting ? policyOf(ports, member, cluster) : undefined,
    pod: held,
    volume: heldVolume,
    node,
    volumeOnNode,
    nodeLostAfterMs,
    etcd,
    peers,
    hasCompany: siblingsOf(ports, member, cluster).some((other) => isServing(podOf(ports, other))),
    images,
  };
}

/** The cache holds only labelled objects and may be stale: an object counts as deleted only after the API server returned 404. */
const getOrFetch = async <T extends KubeObject>(
  { client }: MemberPorts,
  store: Store<T>,
  ref: Ref,
  signal: AbortSignal,
): Promise<T | undefined> => store.get(refKey(ref)) ?? (await client.get(store.resource, ref, signal));

/** A PVC has no owner reference: the garbage collector would delete it. An annotation names its member instead. */
const volumeOf = (claim: PersistentVolumeClaim | undefined, uid: string): Holding<PersistentVolumeClaim> =>
  claim && controllerOf(claim) === undefined && claim.metadata.annotations?.[MEMBER_UID_ANNOTATION] === uid
    ? { is: 'ours', object: claim }
    : holding(claim, uid);

/**
 * Kubernetes never removes the annotation: months later, a member with a network volume runs elsewhere, and the loss of its
 * first node proves nothing. It counts while no volume is bound yet, and where the volume is bound to that node.
 */
async function nodeOfVolume(
  ports: MemberPorts,
  claim: PersistentVolumeClaim | undefined,
  signal: AbortSignal,
): Promise<NodeView> {
  const name = claim?.metadata.annotations?.[SELECTED_NODE];
  // Users may write it; the API server returns an error for what no node can be called, and no reconcile would end.
  if (claim === undefined || name === undefined || !isObjectName(name)) return { is: 'unknown' };
  const node = await nodeOf(ports, name, signal);
  if (node.is === 'unknown') return node;
  const well = node.is === 'present' && !node.outOfService && node.notReady === undefined;
  const isThere = well || claim.spec?.volumeName === undefined || (await isOnNode(ports, claim, name, signal));
  return isThere ? node : { is: 'unknown' };
}

async function nodeOf(ports: MemberPorts, name: string, signal: AbortSignal): Promise<NodeView> {
  if (ports.nodes.missing) return { is: 'unknown' }; // not deleted: the operator may not read nodes
  const node = await getOrFetch(ports, ports.nodes, { namespace: '', name }, signal);
  if (!node) return { is: 'gone', name, observedMs: ports.observedMs(`Node ${name}`, 'deleted') };
  const ready = node.status?.conditions?.find((c) => c.type === 'Ready');
  const outOfService = isOutOfService(node);
  const since = ready && ready.status !== 'True' ? ready.lastTransitionTime : undefined;
  const observedMs = ports.observedMs(`Node ${name}`, since && `NotReady since ${since}`);
  const notReady = since !== undefined && { notReady: { since: Date.parse(since), observedMs } };
  return { is: 'present', name, outOfService, ...notReady };
}

/** Topology keys that many nodes share. When no node of a zone is left, a new one may be added to it. */
const SHARED = /(^|[/.-])(zone|region|location|datacenter|rack)$/;

/** Whether no other node can mount the volume: each CSI driver states with a node label of its own where a volume is. */
async function isOnNode(
  ports: MemberPorts,
  claim: PersistentVolumeClaim,
  lost: string,
  signal: AbortSignal,
): Promise<boolean> {
  const name = claim.spec?.volumeName;
  if (name === undefined) return false;
  const volume = await ports.client.get(persistentVolumes, { namespace: '', name }, signal).catch((error: unknown) => {
    if (isForbidden(error)) return undefined; // what the operator may not read proves nothing
    throw error;
  });
  const others = [...ports.nodes.all()].filter(({ metadata }) => metadata.name !== lost);
  const isElsewhere = ({ key, values = [] }: NodeSelectorRequirement): boolean =>
    others.some(({ metadata }) => values.includes(metadata.labels?.[key] ?? ''));
  const binds = (e: NodeSelectorRequirement): boolean => e.operator === 'In' && !SHARED.test(e.key) && !isElsewhere(e);
  const terms = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return terms.length > 0 && terms.every((term) => (term.matchExpressions ?? []).some(binds));
}

/**
 * The cluster that controls this member, or will adopt it: also a member without a controller must be removed from etcd when it
 * is deleted. Before a Pod is created, a cached cluster without an id, or with TLS, is read again from the API server: a seed
 * started as "new" would bootstrap a second, empty cluster, and the Pod could mount the previous CA bundle. Before the finalizer
 * is released, always: a deleted seed could take the only copy of the data along, and the deletionPolicy may have changed.
 */
async function ownCluster(
  ports: MemberPorts,
  member: EtcdMember,
  { creates, deleting }: { readonly creates: boolean; readonly deleting: boolean },
  signal: AbortSignal,
): Promise<EtcdCluster | undefined> {
  const owner = controllerOf(member);
  if (owner && owner.kind !== etcdClusters.kind) return undefined;
  const ref = { namespace: member.metadata.namespace ?? '', name: owner?.name ?? member.spec.clusterName };
  const cached = ports.clusters.get(refKey(ref));
  const matters = cached?.status?.clusterID === undefined || member.spec.tls !== undefined;
  const doubtful = !cached || !isMemberOf(member, cached) || deleting || (creates && matters);
  const cluster = doubtful ? await ports.client.get(ports.clusters.resource, ref, signal) : cached;
  return cluster && isMemberOf(member, cluster) ? cluster : undefined;
}

/** The policy of a cluster that does not exist any more is known from the event of its deletion. */
function policyOf(ports: MemberPorts, member: EtcdMember, cluster: EtcdCluster | undefined): Observed['policy'] {
  if (cluster) return cluster.spec.deletionPolicy ?? 'Delete';
  const owner = controllerOf(member);
  const known = owner && ports.deletedPolicies.of(owner.uid);
  if (known !== undefined || !owner) return known;
  const cached = ports.clusters.get(refKey({ namespace: member.metadata.namespace ?? '', name: owner.name }));
  return cached?.metadata.uid === owner.uid ? 'pending' : undefined;
}

/** The cluster and snapshot controllers share the etcd sessions of this cluster. */
async function accessTo(ports: MemberPorts, member: EtcdMember, cluster: EtcdCluster | undefined): Promise<Access> {
  if (cluster) return ports.credentials.access(cluster, () => memberHost(member));
  return { cluster: refKey({ namespace: member.metadata.namespace ?? '', name: member.spec.clusterName }) };
}

async function askSelf(
  ports: MemberPorts,
  member: EtcdMember,
  cluster: EtcdCluster | undefined,
  pod: Pod,
  signal: AbortSignal,
): Promise<SelfView> {
  const ip = pod.status?.podIP;
  if (ip === undefined || isPodOver(pod)) return { is: 'notAsked' };
  const ask = { timeoutMs: ASK_TIMEOUT_MS, signal, access: await accessTo(ports, member, cluster) };
  // No expected ids here: the rules compare them, because an id that differs from the recorded one is evidence.
  const answer = await askMember(ports.etcd, { ...ask, endpoint: memberEndpoint(member, ip) }, {});
  if (answer.is !== 'answers') return { is: 'unreachable', message: answer.message };
  const { clusterID, id: memberID, version } = answer.self;
  // The id is recorded once: a Pod IP reused within the cluster must not give this member the id of another one.
  const other = siblingsOf(ports, member, cluster).find(({ status }) => status?.memberID === memberID);
  if (other && member.status?.memberID === undefined)
    return { is: 'unreachable', message: `EtcdMember ${other.metadata.name} responds at the address of its Pod` };
  return { is: 'answers', clusterID, memberID, version };
}

/** The other members of the same cluster. */
const siblingsOf = (ports: MemberPorts, member: EtcdMember, cluster: EtcdCluster | undefined): readonly EtcdMember[] =>
  ports.members
    .byIndex(member.metadata.namespace ?? '', CLUSTER_LABEL, member.spec.clusterName)
    .filter((m) => m.metadata.uid !== member.metadata.uid && cluster !== undefined && isMemberOf(m, cluster));

function podOf(ports: MemberPorts, { metadata: { namespace = '', name = '', uid = '' } }: EtcdMember): Pod | undefined {
  const pod = holding(ports.pods.get(refKey({ namespace, name })), uid);
  return pod.is === 'ours' ? pod.object : undefined;
}

const isServing = (pod: Pod | undefined): boolean =>
  pod !== undefined && isPodReady(pod) && pod.metadata.deletionTimestamp === undefined;

/**
 * A peer that still lists the member wins: one that a user started with --force-new-cluster has the same cluster id but lists
 * only itself, which does not mean that the other members have removed this one.
 */
async function askPeers(
  ports: MemberPorts,
  member: EtcdMember,
  cluster: EtcdCluster | undefined,
  signal: AbortSignal,
): Promise<PeersView> {
  const others = siblingsOf(ports, member, cluster);
  if (others.length === 0) return { is: 'none' };
  const ours = cluster?.status?.clusterID;
  let found: PeersView = { is: 'unreachable', message: 'no other member has a Pod with an IP' };
  const unreachable = (message: string): PeersView => (found.is === 'answer' ? found : { is: 'unreachable', message });
  for (const other of others) {
    const ip = podOf(ports, other)?.status?.podIP;
    if (ip === undefined) continue;
    const endpoint = memberEndpoint(other, ip);
    const ask = { endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access: await accessTo(ports, other, cluster) };
    const answer = await ports.etcd.memberList({ ...ask, linearizable: true });
    if (!answer.ok) {
      found = unreachable(answer.error.message);
      continue;
    }
    const { clusterId, members } = answer.value;
    // A Pod IP may be reused by another cluster, which does not list this member: that does not mean that it was removed.
    if (ours !== undefined && hexId(clusterId) !== ours) {
      found = unreachable(`a peer responds with cluster ID ${hexId(clusterId)}, but this cluster has ${ours}`);
      continue;
    }
    const list = members.map(({ id, name, peerURLs }) => ({ id: hexId(id), name, peerURLs }));
    found = { is: 'answer', members: list };
    if (isListed(member, list)) break;
  }
  return found;
}
