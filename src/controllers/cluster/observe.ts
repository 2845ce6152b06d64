/** Observes one cluster: Kubernetes objects from the cache, etcd by requests to its members. */

import { unlabelledReferences } from '../../access/observe-references.ts';
import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  BY_CLUSTER,
  CLUSTER_LABEL,
  COMPONENT_LABEL,
  clientServiceName,
  headlessServiceName,
  pdbName,
} from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import { controllerOf, holding, identity, isMemberOf } from '../../domain/ownership.ts';
import { isPodOver } from '../../domain/pod.ts';
import {
  clusterReferences,
  issuerNotPermitted,
  OPEN,
  storeNotPermitted,
  type Tenancy,
  withoutDenied,
} from '../../domain/tenancy.ts';
import { ASK_TIMEOUT_MS, RETAINED_MS } from '../../domain/timing.ts';
import type { EtcdPort } from '../../etcd/client.ts';
import type { KvPort } from '../../etcd/kv.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import type { PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type KubeObject, keyOf, refKey } from '../../kube/object.ts';
import type { AnyStore } from '../../kube/store.ts';
import { present } from '../../lib/present.ts';
import { REFUSED_AGAIN_MS } from '../../runtime/failures.ts';
import type { Memory } from '../../runtime/plan.ts';
import { UNHEALTHY_CLUSTER } from './calls.ts';
import { requestedNeeds } from './credentials/cert-manager-requests.ts';
import { type CredentialsPorts, judgeSecrets, observeCredentials } from './credentials/observe.ts';
import { endpointsOf, hostsOf } from './etcd-calls.ts';
import type { ChangePorts } from './execute-etcd-call.ts';
import { type DefragPorts, observeDefrag, withReads } from './observe-defragmentation.ts';
import { askEach, askEtcd, etcdView, lowestRevision, withHashes } from './observe-etcd.ts';
import { type MemberStores, memberViews, viewOf, withFreshEvidence } from './observe-members.ts';
import { lacksPolicy, type NetworkPorts, observeNetwork } from './observe-network.ts';
import { type ObjectPorts, observeObject, observePdb } from './observe-objects.ts';
import type { ReplacementLedger } from './observe-replacements.ts';
import { observeRestore, type RestorePorts } from './observe-restore.ts';
import type { SpaceTrends } from './observe-space-trend.ts';
import { observeSuccessors, type SuccessorPorts } from './observe-successors.ts';
import type { TurnLedger } from './observe-turns.ts';
import { listUncachedMembers } from './observe-uncached-members.ts';
import { observeVersionChange, type VersionPorts } from './observe-version-change.ts';
import { type Gathered, type MemberView, seedName, wantsPdb } from './observed.ts';
import { isQuarantined } from './quarantine.ts';

export interface ClusterPorts
  extends CredentialsPorts,
    DefragPorts,
    MemberStores,
    NetworkPorts,
    ObjectPorts,
    RestorePorts,
    SuccessorPorts,
    VersionPorts {
  readonly client: Client;
  readonly etcd: CredentialsPorts['etcd'] &
    EtcdPort &
    ChangePorts & {
      readonly maintenance: Pick<MaintenancePort, 'hashKV' | 'downgrade' | 'defragment'>;
      readonly kv: Pick<KvPort, 'read' | 'compact'>;
    };
  readonly images: ImagePolicy;
  /** Absent: the defaults. */
  readonly tenancy?: Tenancy;
  /** How far the wall clock has jumped ahead in this time. */
  readonly clockAheadMs: (withinMs: number) => number;
  /** For how long this process has observed the present state of a key. */
  readonly observedMs: (key: string, state: string | undefined) => number;
  readonly spaceTrends: Pick<SpaceTrends, 'note' | 'forget'>;
  readonly replacements: Pick<ReplacementLedger, 'rate' | 'claim'>;
  readonly turns: Pick<TurnLedger, 'turns' | 'claim' | 'waiting'>;
}

/** What all clusters share. */
const sharedLimits = (ports: ClusterPorts, cluster: EtcdCluster) => ({
  replacementRate: ports.replacements.rate(ports.now(), cluster),
  ...present({ turns: ports.turns.turns(ports.now(), cluster) }),
});

export async function observe(
  ports: ClusterPorts,
  key: string,
  signal: AbortSignal,
  memory: Memory,
): Promise<Gathered | undefined> {
  const found = await presentCluster(ports, key, signal);
  if (!found) return undefined;
  const tenancy = ports.tenancy ?? OPEN;
  const { object: permitted, denied } = withoutDenied(found, tenancy);
  const { cluster, ...restore } = observeRestore(ports, permitted);
  const { name, namespace } = identity(cluster);
  const seen = memberViews(ports, cluster);
  ports.etcd.retain(key, seen.flatMap(endpointsOf));
  const secrets = await judgeSecrets(ports, cluster);
  const hosts = hostsOf(seen);
  const access = await ports.credentials.access(cluster, (endpoint) => hosts[endpoint]);
  const requests = { etcd: ports.etcd, ask: { timeoutMs: ASK_TIMEOUT_MS, signal, access } };
  const [objects, list, answered] = await Promise.all([
    observeObjects(ports, cluster, signal),
    askEtcd(requests, cluster, seen),
    askEach(requests, cluster, seen),
  ]);
  const listed = list.is === 'answers' ? list.view : list;
  const uncached = await listUncachedMembers(ports, cluster, answered, listed, signal);
  const views = [...answered, ...uncached.map((object) => viewOf(ports, cluster, object))];
  const readable = await withReads(ports.etcd, requests.ask, cluster, await withHashes(requests, views));
  const members = await withFreshEvidence(ports, readable, signal);
  const etcd = await etcdView(requests, cluster, members, list);
  const ask = list.is === 'answers' ? { ...requests.ask, endpoint: list.from } : undefined;
  const credentials = await observeCredentials(ports, cluster, secrets, members, ask, signal);
  // A user may have fixed the password: read the Secret in the next reconcile instead of in five minutes.
  if (list.is === 'authRejected') ports.credentials.forget(key);
  const volumes = [...ports.volumes.byIndex(namespace, CLUSTER_LABEL, name)];
  const gathered: Gathered = {
    now: ports.now(),
    ...present({ clockAheadMs: ports.clockAheadMs(RETAINED_MS) || undefined }),
    memory,
    ...refusedSince(memory, ports.now()),
    ...sharedLimits(ports, cluster),
    cluster,
    ...objects,
    seed: heldSeed(ports, cluster),
    seedObservedMs: ports.observedMs(seedKey(key), seedState(cluster, members)),
    members: members.map(({ status: _status, ...m }) => ({ ...m, ...unready(ports, m) })),
    etcd,
    ...present({ spaceTrend: ports.spaceTrends.note(key, ports.now(), members) }),
    revision: Number(lowestRevision(members.flatMap((m) => m.status ?? []))),
    quarantined: volumes.filter((pvc) => isUnusedQuarantined(ports, pvc)),
    ...(members.length === 0 && leftObjects(ports, cluster, volumes)),
    images: ports.images,
    ...(denied.length > 0 && { deniedKeys: denied }),
    ...(await notPermitted(ports.client, cluster, tenancy, signal)),
    ...restore,
    schedules: ports.schedules.byIndex(namespace, BY_CLUSTER, name),
    ...(await observeDefrag(ports, cluster, signal)),
    ...credentials,
  };
  const observed = { ...gathered, ...(await observeVersionChange(ports, gathered, requests.ask)) };
  return { ...observed, successors: await observeSuccessors(ports, observed, signal) };
}

/** The garbage collector deletes Pods with their EtcdMembers, unless a user orphaned them: until then their etcd may have the data. */
function leftObjects(
  { pods }: ClusterPorts,
  cluster: EtcdCluster,
  volumes: readonly PersistentVolumeClaim[],
): Pick<Gathered, 'leftVolumes' | 'leftPods'> {
  const { name, namespace } = identity(cluster);
  const isLeft = ({ metadata }: Pod): boolean =>
    metadata.namespace === namespace && metadata.labels?.[CLUSTER_LABEL] === name;
  const left = [...pods.all()].filter((pod) => isLeft(pod) && !isPodOver(pod));
  const nameIn = ({ metadata }: KubeObject): string => metadata.name ?? '';
  return { leftVolumes: volumes.map(nameIn), leftPods: left.map(nameIn) };
}

/** A member that is replaced still uses its PVC until etcd has removed it. */
function isUnusedQuarantined({ members }: ClusterPorts, pvc: PersistentVolumeClaim): boolean {
  const { namespace = '', labels } = pvc.metadata;
  const user = members.get(refKey({ namespace, name: labels?.[COMPONENT_LABEL] ?? '' }));
  return isQuarantined(pvc) && controllerOf(pvc) === undefined && !user;
}

async function observeObjects(ports: ClusterPorts, cluster: EtcdCluster, signal: AbortSignal) {
  const { name } = identity(cluster);
  const [headless, client, pdb, network] = await Promise.all([
    observeObject(ports.client, ports.services, cluster, headlessServiceName(name), signal),
    observeObject(ports.client, ports.services, cluster, clientServiceName(name), signal),
    observePdb(ports, cluster, signal),
    observeNetwork(ports, cluster, signal),
  ]);
  return { services: { headless, client }, pdb, ...network };
}

function heldSeed({ members }: ClusterPorts, cluster: EtcdCluster): Gathered['seed'] {
  const { namespace, uid } = identity(cluster);
  const seed = members.get(refKey({ namespace, name: seedName(cluster) }));
  return seed && isMemberOf(seed, cluster) ? { is: 'ours', object: seed } : holding(seed, uid);
}

export const readinessKey = (key: string): string => `Readiness ${key}`;

/** A kubelet that was cut off reports at first what it had probed meanwhile. */
function unready(ports: ClusterPorts, { object, pod, nodeReady }: MemberView): Pick<MemberView, 'unreadyForMs'> {
  const isUnready = pod.is === 'present' && !pod.ready;
  const state = isUnready ? `${pod.uid} ${pod.runningSince} ${nodeReady}` : undefined;
  const unreadyForMs = ports.observedMs(readinessKey(keyOf(object)), state);
  return isUnready ? { unreadyForMs } : {};
}

export const seedKey = (key: string): string => `Seed ${key}`;

/**
 * The seed and the first run of its etcd, or all later ones: each run of one that crashes every five minutes would start the time
 * again. Nothing is kept of clusters that have formed.
 */
function seedState({ status }: EtcdCluster, members: readonly MemberView[]): string | undefined {
  const seed = members.find(({ object }) => object.spec.bootstrap === true);
  if (status?.clusterID !== undefined || !seed) return undefined;
  const { pod } = seed;
  const run = pod.is === 'present' && (pod.restarted ? `restarted in ${pod.uid}` : pod.runningSince);
  return `${seed.object.metadata.uid} ${run}`;
}

/** What a spec names cannot change after the bootstrap, and a running cluster keeps working when the administrator tightens a rule. */
async function notPermitted(
  client: Client,
  cluster: EtcdCluster,
  tenancy: Tenancy,
  signal: AbortSignal,
): Promise<Pick<Gathered, 'notPermitted'>> {
  if (cluster.status?.clusterID !== undefined) return {};
  const source = cluster.spec.bootstrap?.restore?.source;
  const rules = [issuerNotPermitted(cluster.spec, tenancy), source && storeNotPermitted(source, tenancy)];
  const { namespace } = identity(cluster);
  const labels = await unlabelledReferences(client, namespace, clusterReferences(cluster), tenancy, signal);
  const messages = [...rules.filter((message) => message !== undefined), ...labels];
  return messages.length === 0 ? {} : { notPermitted: messages.join('; ') };
}

/** Since when etcd has refused the same change. An old refusal is ignored: it does not describe the current state. */
const refusedSince = ({ failures }: Memory, now: number): Pick<Gathered, 'refusedSince'> => {
  const refusal = failures.find(({ kind, at }) => kind?.startsWith(UNHEALTHY_CLUSTER) && now - at < REFUSED_AGAIN_MS);
  return refusal ? { refusedSince: refusal.since } : {};
};

/**
 * The cache may show that the garbage collector deletes the objects of a cluster before it shows that the cluster is deleted, and
 * the controller would recreate them. So when an object is missing or being deleted, and before a member is adopted, it reads
 * the cluster from the API server: the garbage collector deletes members whose owner does not exist, and their PVCs. So it does
 * before it scales down: replicas may have been raised since.
 */
async function presentCluster(ports: ClusterPorts, key: string, signal: AbortSignal): Promise<EtcdCluster | undefined> {
  const cached = ports.clusters.get(key);
  if (!cached) return undefined;
  const { name, namespace, uid } = identity(cached);
  const members = ports.members.byIndex(namespace, CLUSTER_LABEL, name);
  const mayBeOurs = (m: EtcdMember): boolean => !cached.status || isMemberOf(m, cached);
  const unowned = members.some((m) => controllerOf(m) === undefined && mayBeOurs(m));
  if (!cached.status && !unowned) return cached; // nothing was created for it yet, and its first write is rejected if the cluster is deleted
  const lacks = (store: AnyStore, object: string): boolean =>
    store.get(refKey({ namespace, name: object })) === undefined;
  const suspicious =
    unowned ||
    lacks(ports.services, headlessServiceName(name)) ||
    lacks(ports.services, clientServiceName(name)) ||
    requestedNeeds(cached).some(({ requested }) => lacks(ports.certificates, requested.certificate)) ||
    (hasPdb(cached) && lacks(ports.pdbs, pdbName(name))) ||
    lacksPolicy(ports, cached) ||
    isAbove(targetOf(cached.spec, cached.status).replicas, members) ||
    members.some((m) => m.metadata.deletionTimestamp !== undefined);
  if (!suspicious) return cached;
  const fresh = await ports.client.get(ports.clusters.resource, { namespace, name }, signal);
  return fresh?.metadata.uid === uid ? fresh : undefined;
}

/** Whether there are more members than wanted. A paused cluster keeps all of them. */
const isAbove = (replicas: number, members: readonly EtcdMember[]): boolean =>
  replicas > 0 && members.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length > replicas;

/** There is no PodDisruptionBudget before the bootstrap, nor while the cluster is paused. */
const hasPdb = (cluster: EtcdCluster): boolean =>
  wantsPdb(cluster) && cluster.status?.clusterID !== undefined && cluster.status.observed?.replicas !== 0;
