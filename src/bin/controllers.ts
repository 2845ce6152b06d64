/** The caches and the controllers: one line per kind. */

import { mountedBy } from '../access/mounted.ts';
import { Credentials, EXPIRY } from '../access/secret-cache.ts';
import { findCondition } from '../api/conditions.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../api/etcd-defrag.ts';
import type { EtcdDefragPolicy } from '../api/etcd-defrag-policy.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import { backedUpAt, byCluster, type EtcdSnapshotSchedule } from '../api/etcd-snapshot-schedule.ts';
import { CLUSTER_LABEL, JOB_NAME_LABEL, MANAGED_SELECTOR, SCHEDULE_LABEL } from '../api/names.ts';
import { clusterBrain, clusterResource, wireCluster } from '../controllers/cluster/controller.ts';
import { certificates } from '../controllers/cluster/credentials/observe-cert-manager.ts';
import { defragPolicyResource, defragResource, notYetBrain } from '../controllers/defrag/controller.ts';
import { memberBrain, memberResource, wireMember } from '../controllers/member/controller.ts';
import { snapshotBrain, snapshotResource, wireSnapshot } from '../controllers/snapshot/controller.ts';
import { isOver } from '../controllers/snapshot/observed.ts';
import { FAILED_REASONS } from '../controllers/snapshot/status.ts';
import { scheduleBrain, scheduleResource, wireSchedule } from '../controllers/snapshot-schedule/controller.ts';
import { asksCertManager, type Certificate } from '../domain/cert-manager.ts';
import { isPodReady } from '../domain/pod.ts';
import type { Etcd } from '../etcd/client.ts';
import { shownBy } from '../etcd/handshake.ts';
import type { TlsMaterial } from '../etcd/transport.ts';
import type { Job, Node, PersistentVolumeClaim, Pod, PodDisruptionBudget, Service } from '../gen/kube.ts';
import type { Client } from '../kube/client.ts';
import { EventRecorder } from '../kube/events.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../kube/object.ts';
import { jobs, nodes, persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../kube/resources.ts';
import { type AnyStore, Store } from '../kube/store.ts';
import { systemChance } from '../pki/key-source.ts';
import { type Clock, sleep } from '../runtime/clock.ts';
import { type Brain, Controller, type ControllerOptions } from '../runtime/controller.ts';
import type { Pulse } from '../runtime/heartbeat.ts';
import type { Logger } from '../runtime/log.ts';
import { startCache } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Reason } from '../runtime/queue.ts';
import type { Flags } from './flags.ts';

/** Every kind that plans speak about. */
const RESOURCES: ReadonlyMap<string, Resource> = new Map(
  [
    clusterResource,
    memberResource,
    pods,
    services,
    persistentVolumeClaims,
    podDisruptionBudgets,
    certificates,
    jobs,
    snapshotResource,
  ].map((r: Resource) => [r.kind, r]),
);

const imagesOf = ({ etcdImageRepository: repository, etcdImageAllowed: allowed, operatorImage: operator }: Flags) => ({
  repository,
  allowed,
  ...(operator !== '' && { operator }),
});

export interface Process {
  readonly flags: Flags;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Who writes, in Leases and Events. */
  readonly identity: string;
  /** Aborts when the process is to end. */
  readonly signal: AbortSignal;
  readonly pulse: Pulse;
  /** What the probes are answered from, as far as it exists yet. */
  readonly parts: Parts;
}

export interface Parts {
  stores: readonly AnyStore[];
  controllers: readonly Running[];
  readonly deadWatches: string[];
}

interface Running {
  readonly name: string;
  readonly depth: number;
  readonly oldestPassMs: number;
  stop(): Promise<void>;
}

export interface Stores {
  readonly clusters: Store<EtcdCluster>;
  readonly members: Store<EtcdMember>;
  readonly snapshots: Store<EtcdSnapshot>;
  readonly schedules: Store<EtcdSnapshotSchedule>;
  readonly defrags: Store<EtcdDefrag>;
  readonly defragPolicies: Store<EtcdDefragPolicy>;
  readonly services: Store<Service>;
  readonly pods: Store<Pod>;
  readonly jobs: Store<Job>;
  readonly volumes: Store<PersistentVolumeClaim>;
  readonly budgets: Store<PodDisruptionBudget>;
  readonly nodes: Store<Node>;
  /** Others install the kind, or nobody does: it is watched once somebody asks for it, and readiness does not depend on it. */
  readonly certificates: Store<Certificate>;
}

export function startStores(client: Client, process: Process): Stores {
  const { flags, clock, log, signal, metrics, pulse, parts } = process;
  const namespaces = flags.watchNamespaces;
  const onDead = (kind: string, error: unknown): void => {
    log.error({ kind, error: String(error) }, 'a watch has ended, and the process has to be started anew');
    parts.deadWatches.push(kind);
  };
  const options = { client, clock, log, signal, metrics, pulse, onDead };
  const cached = <T extends KubeObject>(store: Store<T>): Store<T> => {
    startCache(store, options);
    return store;
  };
  const needed = {
    clusters: cached(new Store(clusterResource, namespaces)),
    members: cached(new Store(memberResource, namespaces, [CLUSTER_LABEL])),
    snapshots: cached(new Store(snapshotResource, namespaces, [SCHEDULE_LABEL])),
    schedules: cached(new Store(scheduleResource, namespaces, [byCluster])),
    defrags: cached(new Store(defragResource, namespaces)),
    defragPolicies: cached(new Store(defragPolicyResource, namespaces)),
    services: cached(new Store(services, namespaces, [], MANAGED_SELECTOR)),
    pods: cached(new Store(pods, namespaces, [JOB_NAME_LABEL], MANAGED_SELECTOR)),
    jobs: cached(new Store(jobs, namespaces, [SCHEDULE_LABEL], MANAGED_SELECTOR)),
    volumes: cached(new Store(persistentVolumeClaims, namespaces, [CLUSTER_LABEL], MANAGED_SELECTOR)),
    budgets: cached(new Store(podDisruptionBudgets, namespaces, [], MANAGED_SELECTOR)),
    nodes: cached(new Store(nodes, [])),
  };
  parts.stores = Object.values(needed);
  const whenMissing = 'cert-manager is not installed, and a cluster asks for it: looking for it every few seconds';
  const onDemand = new Store(certificates, namespaces, [], MANAGED_SELECTOR);
  onFirst(needed.clusters, asksCertManager, () => startCache(onDemand, { ...options, whenMissing }));
  return { ...needed, certificates: onDemand };
}

function onFirst<T extends KubeObject>(store: Store<T>, isOne: (object: T) => boolean, begin: () => void): void {
  let begun = false;
  store.onChange((_, after) => {
    if (begun || !after || !isOne(after)) return;
    begun = true;
    begin();
  });
}

/**
 * Starts one controller, with all objects that exist already in its queue. What has happened while nobody acted comes first;
 * that all others are as they were is looked at in whatever time is left.
 */
function started<Object extends KubeObject, Observed, Status extends object>(
  brain: Brain<Observed, Status>,
  store: Store<Object>,
  options: ControllerOptions,
  wire: (enqueue: (key: string, reason?: Reason) => void) => void = (enqueue) =>
    store.onChange((before, after) => enqueue(keyOf((after ?? before) as Object))),
  isWell: (object: Object) => boolean = () => false,
): Running {
  const controller = new Controller(brain, options);
  wire((key, reason) => controller.enqueue(key, reason));
  for (const object of store.all()) if (!isWell(object)) controller.enqueue(keyOf(object));
  for (const object of store.all()) controller.enqueue(keyOf(object), 'resync');
  return controller;
}

/** For a handshake. */
const LOOK_MS = 2_000;
const lookAt = (endpoint: string, tls: TlsMaterial): Promise<string | undefined> => shownBy(endpoint, tls, LOOK_MS);

const credentialsFor = (client: Client, stores: Stores, flags: Flags, now: () => number): Credentials =>
  new Credentials({
    client,
    now,
    domain: flags.clusterDomain,
    look: lookAt,
    mounted: (cluster) => mountedBy(stores, cluster),
    graceMs: flags.rotationGraceSeconds * 1000,
  });

/**
 * Each once, when it is seen to end. Every reason is there from the beginning: of a counter that begins with 1, Prometheus
 * says that it has not increased, and nobody is told of the first failure.
 */
export function countSnapshots({ snapshots }: Pick<Stores, 'snapshots'>, metrics: Pick<Metrics, 'snapshots'>): void {
  metrics.snapshots.inc({ phase: 'Complete', reason: 'SnapshotStored' }, 0);
  for (const reason of FAILED_REASONS) metrics.snapshots.inc({ phase: 'Failed', reason }, 0);
  snapshots.onChange((before, after) => {
    if (!before || isOver(before) || !after || !isOver(after)) return;
    const reason = findCondition(after.status?.conditions, 'Ready')?.reason ?? '';
    metrics.snapshots.inc({ phase: after.status?.phase ?? '', reason });
  });
}

const LAST_BACKUP = {
  name: 'etcd_operator_last_backup_timestamp_seconds',
  help: 'When the data of the last snapshot that a schedule stored was read, in seconds since 1970.',
  labelNames: ['namespace', 'cluster', 'schedule'],
} as const;

function* backupsOf({ schedules }: Stores) {
  for (const schedule of schedules.all()) {
    const { namespace = '', name = '' } = schedule.metadata;
    const at = backedUpAt(schedule);
    if (at !== undefined) yield { namespace, cluster: schedule.spec.clusterRef.name ?? '', schedule: name, at };
  }
}

/** What need not be looked at first. */
function wellIn(stores: Stores) {
  const runs = ({ metadata }: EtcdMember): boolean => {
    const pod = metadata.deletionTimestamp === undefined ? stores.pods.get(keyOf({ metadata })) : undefined;
    return pod !== undefined && isPodReady(pod);
  };
  const isComplete = ({ metadata, spec }: EtcdCluster): boolean => {
    const members = stores.members.labelled(metadata.namespace ?? '', CLUSTER_LABEL, metadata.name ?? '');
    return members.length === spec.replicas && members.every(runs);
  };
  return { runs, isComplete };
}

const recorderOf = (client: Client, { clock, log, identity }: Process): EventRecorder =>
  new EventRecorder({
    client,
    controller: 'etcd-operator',
    instance: identity,
    now: () => clock.now(),
    sleep: (ms, until) => sleep(clock, ms, until),
    onError: (error) => log.warn({ error: String(error) }, 'an Event was not written'),
  });

/** Starts all controllers; the answer stops them and waits for what they are doing. */
export function startControllers(
  client: Client,
  etcd: Etcd,
  stores: Stores,
  process: Process,
  signal: AbortSignal,
): () => Promise<void> {
  const { flags, clock, log, metrics, parts } = process;
  const now = (): number => clock.now();
  // A member that was given up on may be another one now: the pass that this change leads to asks it.
  stores.pods.onChange((before, after) => {
    const { namespace = '', labels } = (after ?? before)?.metadata ?? {};
    const cluster = labels?.[CLUSTER_LABEL];
    if (cluster !== undefined) etcd.reset(refKey({ namespace, name: cluster }));
  });
  const recorder = recorderOf(client, process);
  const options = {
    client,
    recorder,
    resources: RESOURCES,
    clock,
    log,
    metrics,
    stores: [...parts.stores, stores.certificates],
    signal,
  };
  const ports = {
    client,
    etcd,
    now,
    images: imagesOf(flags),
    credentials: credentialsFor(client, stores, flags, now),
    chance: systemChance,
    nodeLostAfterMs: flags.nodeLostAfterSeconds * 1000,
    operatorImage: flags.operatorImage,
    ...stores,
  };
  const { runs, isComplete } = wellIn(stores);
  parts.controllers = [
    started(clusterBrain(ports), stores.clusters, options, (enqueue) => wireCluster(ports, enqueue), isComplete),
    started(memberBrain(ports), stores.members, options, (enqueue) => wireMember(ports, enqueue), runs),
    started(snapshotBrain(ports), stores.snapshots, options, (enqueue) => wireSnapshot(ports, enqueue), isOver),
    started(scheduleBrain(ports), stores.schedules, options, (enqueue) => wireSchedule(ports, enqueue)),
    started(notYetBrain('defrag', stores.defrags, now), stores.defrags, options),
    started(notYetBrain('defrag-policy', stores.defragPolicies, now), stores.defragPolicies, options),
  ];
  countSnapshots(stores, metrics);
  metrics.gauges(parts);
  metrics.timestamps({ ...EXPIRY, read: () => ports.credentials.expiries() });
  metrics.timestamps({ ...LAST_BACKUP, read: () => backupsOf(stores) });
  return async () => {
    await Promise.all(parts.controllers.map((controller) => controller.stop()));
    await recorder.flush();
  };
}
