/** Gathers the facts for one cluster: Kubernetes from the cache, etcd asked now. */

import type { SecretCache } from '../../access/secret-cache.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import {
  BY_CLUSTER,
  budgetName,
  CLUSTER_LABEL,
  clientServiceName,
  headlessServiceName,
  QUARANTINE_LABEL,
} from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import type { Certificate } from '../../domain/cert-manager.ts';
import { controllerOf, holding, identity, isMemberOf } from '../../domain/ownership.ts';
import { askMember } from '../../etcd/ask-member.ts';
import type { Access, EtcdPort, MemberStatus } from '../../etcd/client.ts';
import { hexId } from '../../etcd/ids.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import type { PersistentVolumeClaim, Pod, PodDisruptionBudget, Service } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { refKey } from '../../kube/object.ts';
import type { AnyStore, Store } from '../../kube/store.ts';
import type { KeySource } from '../../pki/issue.ts';
import { REFUSED_AGAIN_MS } from '../../runtime/controller.ts';
import type { Refusal } from '../../runtime/plan.ts';
import { UNHEALTHY_CLUSTER } from './calls.ts';
import { requestedNeeds } from './credentials/cert-manager-requests.ts';
import type { RootPorts } from './credentials/execute-root-password.ts';
import { type AskedAuth, askAuth } from './credentials/observe-auth.ts';
import { observeIssuance } from './credentials/observe-cert-manager.ts';
import { observeServedCertificates } from './credentials/observe-served-certificates.ts';
import { endpointsOf, hostsOf } from './etcd-calls.ts';
import type { ChangePorts } from './execute-etcd-call.ts';
import { memberViews, viewOf } from './observe-members.ts';
import { observePdb, observeService } from './observe-objects.ts';
import { listUncachedMembers } from './observe-uncached-members.ts';
import { type EtcdView, isInconsistent, type MemberView, type Observed, seedName, wantsPdb } from './observed.ts';

export interface ClusterPorts {
  readonly client: Client;
  readonly etcd: EtcdPort &
    ChangePorts & {
      readonly maintenance: Pick<MaintenancePort, 'hashKV' | 'downgrade'>;
      readonly auth: AskedAuth & RootPorts['etcd']['auth'];
    };
  readonly now: () => number;
  readonly clusters: Store<EtcdCluster>;
  readonly members: Store<EtcdMember>;
  readonly services: Store<Service>;
  readonly pods: Store<Pod>;
  readonly budgets: Store<PodDisruptionBudget>;
  readonly volumes: Store<PersistentVolumeClaim>;
  /** Indexed by the cluster that they are about. */
  readonly schedules: Store<EtcdSnapshotSchedule>;
  /** Filled once a cluster asks cert-manager for certificates. */
  readonly certificates: Store<Certificate>;
  readonly images: ImagePolicy;
  readonly credentials: SecretCache;
  readonly chance: KeySource;
}

const ASK_TIMEOUT_MS = 2_000;
/** Reads the whole database of a member. */
const HASH_TIMEOUT_MS = 10_000;

export async function observe(
  ports: ClusterPorts,
  key: string,
  signal: AbortSignal,
  refusal: Refusal | undefined,
): Promise<Observed | undefined> {
  const cluster = await presentCluster(ports, key, signal);
  if (!cluster) return undefined;
  const { name, namespace, uid } = identity(cluster);
  const found = memberViews(ports, cluster);
  ports.etcd.retain(key, found.flatMap(endpointsOf));
  const certificates = await ports.credentials.view(cluster);
  const password = await ports.credentials.password(cluster);
  const hosts = hostsOf(found);
  const access = await ports.credentials.access(cluster, (endpoint) => hosts[endpoint]);
  const ways = { etcd: ports.etcd, access, signal };
  const [headless, client, budget, list, answered, issuance] = await Promise.all([
    observeService(ports, cluster, headlessServiceName(name), signal),
    observeService(ports, cluster, clientServiceName(name), signal),
    observePdb(ports, cluster, signal),
    askEtcd(ways, found),
    askEach(ways, cluster, found),
    observeIssuance(ports, cluster, ports.credentials.domain, signal),
  ]);
  const unheard = await listUncachedMembers(ports, cluster, answered, list.is === 'answers' ? list.view : list, signal);
  const members = await withHashes(ways, [...answered, ...unheard.map((object) => viewOf(ports, object))]);
  const etcd = await etcdView(ways, cluster, members, list);
  // Somebody may have put it right: it is looked at again instead of in five minutes.
  if (list.is === 'silent' && list.login === 'rejected') ports.credentials.forget(key);
  const volumes = [...ports.volumes.byIndex(namespace, CLUSTER_LABEL, name)];
  const quarantined = volumes.filter(
    (claim) => claim.metadata.labels?.[QUARANTINE_LABEL] === 'member-removed' && controllerOf(claim) === undefined,
  );
  const seed = ports.members.get(refKey({ namespace, name: seedName(cluster) }));
  return {
    now: ports.now(),
    refusal: refusal?.message,
    ...refusedSince(refusal, ports.now()),
    cluster,
    services: { headless, client },
    pdb: budget,
    seed: seed && isMemberOf(seed, cluster) ? { is: 'ours', object: seed } : holding(seed, uid),
    members: members.map(({ told: _told, ...m }) => m),
    etcd,
    quarantined,
    ...(members.length === 0 && { leftVolumes: volumes.map(({ metadata }) => metadata.name ?? '') }),
    images: ports.images,
    schedules: ports.schedules.byIndex(namespace, BY_CLUSTER, name),
    ...issuance,
    password,
    certificates: {
      ...certificates,
      // Nothing is recorded on what members serve while Secrets are unread, and asking could wait for another read.
      ...(certificates.unreadable ? {} : await observeServedCertificates(ports.credentials, cluster, members)),
    },
  };
}

/** Since when etcd refuses the same change; a refusal of long ago says nothing about now. */
const refusedSince = (refusal: Refusal | undefined, now: number): Pick<Observed, 'refusedSince'> =>
  refusal?.kind?.startsWith(UNHEALTHY_CLUSTER) && now - refusal.at < REFUSED_AGAIN_MS
    ? { refusedSince: refusal.since }
    : {};

/** How members are asked in this pass. */
interface Ways {
  readonly etcd: ClusterPorts['etcd'];
  readonly access: Access;
  readonly signal: AbortSignal;
}

/**
 * Kubernetes takes away what belongs to a deleted cluster, and that can be seen before the deletion itself: all of it would be
 * made again, to be taken away again. So where something is going, the server says whether the cluster is still there.
 * Also before a member is adopted: the garbage collector deletes members whose owner does not exist, and their volumes.
 */
async function presentCluster(ports: ClusterPorts, key: string, signal: AbortSignal): Promise<EtcdCluster | undefined> {
  const cached = ports.clusters.get(key);
  if (!cached) return undefined;
  const { name, namespace, uid } = identity(cached);
  const members = ports.members.byIndex(namespace, CLUSTER_LABEL, name);
  const mayBeOurs = (m: EtcdMember): boolean => !cached.status || isMemberOf(m, cached);
  const unowned = members.some((m) => controllerOf(m) === undefined && mayBeOurs(m));
  if (!cached.status && !unowned) return cached; // nothing was made for it yet, and what begins it is refused where it is gone
  const lacks = (store: AnyStore, object: string): boolean =>
    store.get(refKey({ namespace, name: object })) === undefined;
  const suspicious =
    unowned ||
    lacks(ports.services, headlessServiceName(name)) ||
    lacks(ports.services, clientServiceName(name)) ||
    requestedNeeds(cached).some(({ requested }) => lacks(ports.certificates, requested.certificate)) ||
    (hasBudget(cached) && lacks(ports.budgets, budgetName(name))) ||
    members.some((m) => m.metadata.deletionTimestamp !== undefined);
  if (!suspicious) return cached;
  const fresh = await ports.client.get(ports.clusters.resource, { namespace, name }, signal);
  return fresh?.metadata.uid === uid ? fresh : undefined;
}

/** Nothing is protected before a cluster exists, nor while it is parked. */
const hasBudget = (cluster: EtcdCluster): boolean =>
  wantsPdb(cluster) && cluster.status?.clusterID !== undefined && cluster.status.observed?.replicas !== 0;

/** A member with everything that it said. */
type Told = MemberView & { readonly told?: MemberStatus };

/** Every member of a cluster that exists, about itself. */
function askEach(
  { etcd, access, signal }: Ways,
  cluster: EtcdCluster,
  members: readonly MemberView[],
): Promise<readonly Told[]> {
  const clusterID = cluster.status?.clusterID;
  const ask = async (m: MemberView): Promise<Told> => {
    const [endpoint] = endpointsOf(m);
    if (clusterID === undefined || endpoint === undefined) return m;
    const expected = { clusterID, memberID: m.object.status?.memberID };
    const answer = await askMember(etcd, { endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access }, expected);
    if (answer.is === 'otherMember') return { ...m, answersAs: answer.id };
    return answer.is === 'answers' ? { ...m, self: answer.self, told: answer.status } : m;
  };
  return Promise.all(members.map(ask));
}

export const alarmsOf = (
  members: readonly { readonly told?: Pick<MemberStatus, 'alarms'> }[],
): readonly { readonly id: string; readonly alarm: string }[] => {
  const all = members.flatMap(({ told }) => told?.alarms ?? []);
  const named = all.map(({ memberId, alarm }) => ({ id: hexId(memberId), alarm }));
  return [...new Map(named.map((each) => [`${each.id} ${each.alarm}`, each])).values()];
};

/** Where corruption is reported, whose data differs: all are asked for the hash of what every one of them has. */
async function withHashes({ etcd, access, signal }: Ways, members: readonly Told[]): Promise<readonly Told[]> {
  const told = members.flatMap((m) => m.told ?? []);
  const alarmed = told.some((s) => s.alarms.some(({ alarm }) => alarm === 'CORRUPT'));
  if (!alarmed && !members.some(isInconsistent)) return members;
  const revision = told.reduce((least, s) => (s.revision < least ? s.revision : least), told[0]?.revision ?? 0n);
  return Promise.all(
    members.map(async (m) => {
      const [endpoint] = endpointsOf(m);
      if (!m.self || endpoint === undefined) return m;
      const ask = { endpoint, timeoutMs: HASH_TIMEOUT_MS, signal, access };
      const answer = await etcd.maintenance.hashKV(ask, revision);
      if (!answer.ok) return m;
      return { ...m, self: { ...m.self, hash: `${answer.value.compactRevision}:${answer.value.hash}` } };
    }),
  );
}

/**
 * etcd 3.5 ends when it joins a cluster whose members have not agreed on a version, and only its seed has not for a moment.
 * No call tells the version; but this one, which changes nothing, is answered differently without one.
 */
async function lacksVersion(
  { etcd, access, signal }: Ways,
  cluster: EtcdCluster,
  members: readonly MemberView[],
  list: Listed,
): Promise<boolean> {
  const alone = list.is === 'answers' && list.view.members.length === 1 && (cluster.spec.replicas ?? 1) > 1;
  const old = members.find(({ self }) => self?.version.startsWith('3.5.'));
  const [endpoint] = alone && old ? endpointsOf(old) : [];
  if (endpoint === undefined) return false;
  const ask = { endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access };
  const answer = await etcd.maintenance.downgrade(ask, 'validate', '0.0.1');
  return !answer.ok && answer.error.kind === 'busy';
}

/** The list, with what else is asked where it matters. */
async function etcdView(ways: Ways, cluster: EtcdCluster, members: readonly Told[], list: Listed): Promise<EtcdView> {
  if (list.is !== 'answers') return list;
  const unversioned = await lacksVersion(ways, cluster, members, list);
  const auth = await askAuth(ways.etcd, cluster, { ...ways, endpoint: list.from, timeoutMs: ASK_TIMEOUT_MS });
  return { ...list.view, ...(unversioned && { unversioned }), ...auth, alarms: alarmsOf(members) };
}

/** Who is likely to answer, and to answer for all. */
const promise = ({ object, pod }: MemberView): number =>
  (object.status?.isVoter === true ? 2 : 0) + (pod.is === 'present' && pod.ready ? 1 : 0);

type Listed =
  | Exclude<EtcdView, { readonly is: 'answers' }>
  /** And who said so. */
  | { readonly is: 'answers'; readonly view: EtcdView & { readonly is: 'answers' }; readonly from: string };

/** Voters first; the first member that agrees with a quorum speaks for all. */
async function askEtcd({ etcd, access, signal }: Ways, members: readonly MemberView[]): Promise<Listed> {
  const order = [...members].sort((a, b) => promise(b) - promise(a));
  let view: Listed = { is: 'notAsked' };
  for (const endpoint of order.flatMap(endpointsOf)) {
    const ask = { endpoint, timeoutMs: ASK_TIMEOUT_MS, signal, access };
    const answer = await etcd.memberList({ ...ask, linearizable: true });
    if (!answer.ok) {
      const { kind, message } = answer.error;
      if (kind === 'authFailed') return { is: 'silent', why: message, login: 'rejected' }; // all would say so, and each takes its time for it
      const demanded: boolean = kind === 'authRequired' || (view.is === 'silent' && view.login !== undefined);
      view = { is: 'silent', why: message, ...(demanded && { login: 'demanded' }) };
      continue;
    }
    const { clusterId, members: entries } = answer.value;
    const listed = entries.map(({ id, name, peerURLs, isLearner }) => ({ id: hexId(id), name, peerURLs, isLearner }));
    return {
      is: 'answers',
      from: endpoint,
      view: { is: 'answers', clusterID: hexId(clusterId), members: listed, alarms: [] },
    };
  }
  return view;
}
