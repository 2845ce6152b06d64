/** Observes one snapshot: from the cache, what is about to be used from the API server, and etcd by requests in this reconcile. */

import { unlabelledReferences } from '../../access/observe-references.ts';
import type { SecretCache } from '../../access/secret-cache.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { type EtcdSnapshot, isCopyPending } from '../../api/etcd-snapshot.ts';
import {
  CLUSTER_LABEL,
  clientURL,
  etcdSnapshots,
  JOB_NAME_LABEL,
  lookupJobName,
  snapshotJobName,
} from '../../api/names.ts';
import { endOf, podsOf } from '../../domain/job.ts';
import { memberClientScheme, memberEndpoint, memberHost, serviceOf } from '../../domain/member-address.ts';
import { controllerOf, holding, identity, isBeingDeleted } from '../../domain/ownership.ts';
import { isPaused } from '../../domain/paused.ts';
import { isPodOver } from '../../domain/pod.ts';
import {
  OPEN,
  REFERENCE_NOT_PERMITTED,
  storeNotPermitted,
  storeReferences,
  type Tenancy,
} from '../../domain/tenancy.ts';
import { ASK_TIMEOUT_MS } from '../../domain/timing.ts';
import { askMember } from '../../etcd/ask-member.ts';
import type { EtcdPort } from '../../etcd/client.ts';
import type { Job, Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type Ref, refKey } from '../../kube/object.ts';
import { jobs, persistentVolumeClaims, secrets } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { observeCopy } from './observe-copy.ts';
import {
  clusterNameOf,
  isOfEarlierOperator,
  isOver,
  type MemberReport,
  type MemberView,
  type MissingSecret,
  memberToAsk,
  type Observed,
} from './observed.ts';
import { missingIn, requiredSecretsOf, unreadable } from './required-secrets.ts';

export interface SnapshotPorts {
  readonly client: Client;
  readonly etcd: EtcdPort;
  readonly now: () => number;
  readonly credentials: SecretCache;
  readonly operatorImage: string;
  /** Absent: the defaults. */
  readonly tenancy?: Tenancy;
  readonly snapshots: Store<EtcdSnapshot>;
  readonly clusters: Store<EtcdCluster>;
  readonly members: Store<EtcdMember>;
  /** Indexed by the name of their Job. */
  readonly pods: Store<Pod>;
  readonly jobs: Store<Job>;
}

/** Since when no member could serve a snapshot, by snapshot key. In memory only: after a restart the operator just waits once more. */
export type UnreachableSince = Map<string, number>;

export async function observe(
  ports: SnapshotPorts,
  unreachableSince: UnreachableSince,
  key: string,
  signal: AbortSignal,
  refusal: string | undefined,
): Promise<Observed | undefined> {
  const object = ports.snapshots.get(key);
  if (!object) return undefined;
  const base: Observed = {
    now: ports.now(),
    refusal,
    object,
    operatorImage: ports.operatorImage,
    job: { is: 'absent' },
    isLeaving: false,
    pods: [],
    cluster: undefined,
    lacks: [],
    sources: {},
    members: [],
  };
  if (isCopyPending(object) && !isBeingDeleted(object))
    return { ...base, ...(await observeCopy(ports, object, signal)) };
  if (isOver(object) || isBeingDeleted(object)) return base;
  const { name, namespace, uid } = identity(object);
  // The cache may not have received the Job yet: the API server is asked before it is created, or counts as lost.
  const find = async (ref: Ref): Promise<Job | undefined> =>
    ports.jobs.get(refKey(ref)) ?? (await ports.client.get(jobs, ref, signal));
  const own = { namespace, name: snapshotJobName(name) };
  const first = await find(own);
  const isEarlier = first !== undefined && isResultOfEarlier(first, uid);
  const ref = isEarlier ? { namespace, name: lookupJobName(name) } : own;
  const found = isEarlier ? await find(ref) : first;
  const job = holding(found, uid);
  const leaving = { isLeaving: found !== undefined && isLeaving(found, name) };
  const known = { ...base, job, ...leaving, ...(isEarlier && { earlier: first }) };
  const cluster = { namespace, name: clusterNameOf(object) };
  if (job.is === 'ours')
    return {
      ...known,
      cluster: ports.clusters.get(refKey(cluster)),
      pods: podsOf(job.object, ports.pods.byIndex(namespace, JOB_NAME_LABEL, ref.name)),
    };
  return { ...known, ...(await beforeStart(ports, unreachableSince, key, object, signal)) };
}

/** The earlier operator's Job has taken the snapshot. */
const isResultOfEarlier = (job: Job, uid: string): boolean =>
  holding(job, uid).is === 'ours' && isOfEarlierOperator(job) && endOf(job)?.type === 'Complete';

/** The Job is being deleted, or will be by the garbage collector with its previous owner. */
const isLeaving = (job: Job, snapshot: string): boolean => {
  const owner = controllerOf(job);
  return isBeingDeleted(job) || (owner?.kind === etcdSnapshots.kind && owner.name === snapshot);
};

type BeforeStart = Pick<Observed, 'cluster' | 'lacks' | 'sources' | 'members' | 'unreachableSince'>;

async function beforeStart(
  ports: SnapshotPorts,
  unreachableSince: UnreachableSince,
  key: string,
  object: EtcdSnapshot,
  signal: AbortSignal,
): Promise<BeforeStart> {
  const { namespace } = identity(object);
  const ref = { namespace, name: clusterNameOf(object) };
  // An earlier operator accepted references with an empty name: a GET without a name would be a LIST.
  const read = ref.name === '' ? undefined : () => ports.client.get(ports.clusters.resource, ref, signal);
  const cluster = ports.clusters.get(refKey(ref)) ?? (await read?.());
  const nothing = { cluster, lacks: [], sources: {}, members: [] };
  if (!cluster || isPaused(cluster)) return nothing;
  const lacks = await lacksOf(ports, object, signal);
  if (cluster.status?.clusterID === undefined) return { ...nothing, lacks };
  const [sources, members] = await Promise.all([
    ports.credentials.sources(cluster),
    askMembers(ports, cluster, signal),
  ]);
  return { cluster, lacks, sources, members, ...silence(ports, unreachableSince, key, members) };
}

function silence(
  { now }: SnapshotPorts,
  unreachableSince: UnreachableSince,
  key: string,
  members: readonly MemberView[],
): Pick<Observed, 'unreachableSince'> {
  if (memberToAsk(members)) {
    unreachableSince.delete(key);
    return {};
  }
  const since = unreachableSince.get(key) ?? now();
  unreachableSince.set(key, since);
  return { unreachableSince: since };
}

/** Objects are read by name, and of Secrets only the keys: the operator does not need their values. */
async function lacksOf(
  { client, tenancy = OPEN }: SnapshotPorts,
  { spec, metadata }: EtcdSnapshot,
  signal: AbortSignal,
): Promise<readonly MissingSecret[]> {
  const { namespace = '' } = metadata;
  const found = await Promise.all(
    requiredSecretsOf(spec).map(async (need) => {
      if (need.secret === '') return missingIn(need, undefined);
      const read = await tryGet(client, secrets, { namespace, name: need.secret }, signal);
      return read.ok
        ? missingIn(need, read.object && Object.keys(read.object.data ?? {}))
        : unreadable(need, read.message);
    }),
  );
  const { destination, encryption } = spec;
  const forbidden = storeNotPermitted(destination, tenancy);
  const references = storeReferences(destination, encryption);
  const unlabelled = await unlabelledReferences(client, namespace, references, tenancy, signal);
  const reason = REFERENCE_NOT_PERMITTED;
  const claim = spec.destination.pvc?.claimName;
  const isThere = claim === undefined || (await client.get(persistentVolumeClaims, { namespace, name: claim }, signal));
  const message = `PersistentVolumeClaim ${claim} does not exist: create it`;
  return [
    ...[...(forbidden === undefined ? [] : [forbidden]), ...unlabelled].map(
      (text) => ({ reason, message: text }) as const,
    ),
    ...found.flatMap((lack) => lack ?? []),
    ...(isThere ? [] : [{ reason: 'VolumeClaimMissing', message } as const]),
  ];
}

function askMembers(ports: SnapshotPorts, cluster: EtcdCluster, signal: AbortSignal): Promise<readonly MemberView[]> {
  const { namespace = '', name = '', uid } = cluster.metadata;
  const own = ports.members.byIndex(namespace, CLUSTER_LABEL, name).filter((m) => controllerOf(m)?.uid === uid);
  return Promise.all(
    own.map(async (member) => ({
      name: member.metadata.name ?? '',
      host: memberHost(member),
      endpoint: clientURL(member.metadata.name ?? '', serviceOf(member), namespace, memberClientScheme(member)),
      report: await ask(ports, cluster, member, signal),
      ...(cluster.status?.defragmentation?.member === member.metadata.name && { isBeingDefragmented: true }),
    })),
  );
}

async function ask(
  { pods, etcd, credentials }: SnapshotPorts,
  cluster: EtcdCluster,
  member: EtcdMember,
  signal: AbortSignal,
): Promise<MemberReport> {
  const unreachable = (message: string): MemberReport => ({ is: 'unreachable', message });
  const { namespace = '', name = '', uid = '', deletionTimestamp } = member.metadata;
  if (deletionTimestamp !== undefined) return unreachable('the member is being deleted');
  const held = holding(pods.get(refKey({ namespace, name })), uid);
  if (held.is !== 'ours') return unreachable('it has no Pod');
  const { metadata, status } = held.object;
  if (metadata.deletionTimestamp !== undefined) return unreachable('its Pod is being deleted');
  if (status?.podIP === undefined || isPodOver(held.object)) return unreachable('its Pod is not running');
  const access = await credentials.access(cluster, () => memberHost(member));
  const ask = { endpoint: memberEndpoint(member, status.podIP), timeoutMs: ASK_TIMEOUT_MS, signal, access };
  const answer = await askMember(etcd, ask, { clusterID: cluster.status?.clusterID });
  if (answer.is !== 'answers') return unreachable(answer.message);
  const { id, leader, isLearner, applied, databaseBytes, alarms } = answer.self;
  return { is: 'answers', id, leader, isLearner, applied, databaseBytes, isCorrupt: alarms.includes('CORRUPT') };
}
