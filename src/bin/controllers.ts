/** The controllers: one row per kind. */
import { mountedBy } from '../access/mounted.ts';
import { EXPIRY, SecretCache } from '../access/secret-cache.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { CLUSTER_LABEL } from '../api/names.ts';
import { clusterReconciler, countReplacements, isComplete, wireCluster } from '../controllers/cluster/controller.ts';
import { DefragmentRequests } from '../controllers/cluster/execute-defragment.ts';
import { DefragmentationLedger } from '../controllers/cluster/observe-defragmentation-fleet.ts';
import { ReplacementLedger } from '../controllers/cluster/observe-replacements.ts';
import { SpaceTrends } from '../controllers/cluster/observe-space-trend.ts';
import { TurnLedger } from '../controllers/cluster/observe-turns.ts';
import { HashLedger } from '../controllers/cluster/observe-version-change.ts';
import { defragReconciler, wireDefrag } from '../controllers/defrag/controller.ts';
import { defragPolicyReconciler, wireDefragPolicy } from '../controllers/defrag-policy/controller.ts';
import { isMemberReady, memberReconciler, wireMember } from '../controllers/member/controller.ts';
import { wantedPod } from '../controllers/member/wanted-pod.ts';
import {
  countPendingCopies,
  countSnapshots,
  snapshotReconciler,
  wireSnapshot,
} from '../controllers/snapshot/controller.ts';
import { isOver } from '../controllers/snapshot/observed.ts';
import {
  LAST_BACKUP,
  lastBackups,
  measureSchedules,
  scheduleReconciler,
  wireSchedule,
} from '../controllers/snapshot-schedule/controller.ts';
import { volumeReconciler, wireVolume } from '../controllers/volume/controller.ts';
import { isFinished } from '../domain/defragmentation.ts';
import { isDefault, withPodSettings } from '../domain/pod-settings.ts';
import type { Etcd } from '../etcd/client.ts';
import { type Client, creating } from '../kube/client.ts';
import { EventRecorder } from '../kube/events.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../kube/object.ts';
import type { AnyStore, Store } from '../kube/store.ts';
import { present } from '../lib/present.ts';
import { sleep } from '../runtime/clock.ts';
import { Controller, type ControllerOptions, type Reconciler } from '../runtime/controller.ts';
import { ClockJumps, ObservedStates } from '../runtime/elapsed.ts';
import type { NamedCall } from '../runtime/plan.ts';
import type { Priority } from '../runtime/queue.ts';
import type { Flags } from './flags.ts';
import type { Process, Running, Stores } from './stores.ts';

const imagesOf = ({ etcdImageRepository: repository, etcdImageAllowed: allowed, operatorImage: operator }: Flags) => ({
  repository,
  allowed,
  ...(operator !== '' && { operator }),
});

const networkOf = ({ namespace, tenancy }: Flags) => ({
  ...present({ operatorNamespace: namespace }),
  storeNetworks: tenancy.allowedStoreNetworks,
  allowAmbientCredentials: tenancy.allowAmbientCredentials,
});

interface Wiring<Object> {
  /** Which events concern which object; without it, those of the object itself. */
  readonly wire?: (enqueue: (key: string, priority?: Priority) => void) => void;
  /** Whether an object need not be reconciled first when the operator starts. */
  readonly isHealthy?: (object: Object) => boolean;
}

/** A controller that is ready to start, with all objects that exist in its queue: those that may need a repair first. */
const row =
  <Object extends KubeObject, Observed, Status extends object, Call extends NamedCall>(
    store: Store<Object>,
    reconciler: Reconciler<Observed, Status, Call>,
    { wire, isHealthy = () => false }: Wiring<Object> = {},
  ) =>
  (options: ControllerOptions): Running => {
    const controller = new Controller(reconciler, options);
    const enqueue = (key: string, priority?: Priority): void => controller.enqueue(key, priority);
    if (wire) wire(enqueue);
    else store.onChange((before, after) => enqueue(keyOf((after ?? before) as Object)));
    for (const object of store.all()) if (!isHealthy(object)) enqueue(keyOf(object));
    for (const object of store.all()) enqueue(keyOf(object), 'low');
    return controller;
  };

type Ports = ReturnType<typeof portsOf>;

function controllersOf(ports: Ports) {
  const { clusters, members, snapshots, schedules, defrags, defragPolicies, pods, volumes } = ports;
  const isReady = (member: EtcdMember): boolean => isMemberReady(pods, member);
  return [
    row(clusters, clusterReconciler(ports), {
      wire: (enqueue) => wireCluster(ports, enqueue),
      isHealthy: (cluster) => isComplete(members, cluster, isReady),
    }),
    row(members, memberReconciler(ports), { wire: (enqueue) => wireMember(ports, enqueue), isHealthy: isReady }),
    row(snapshots, snapshotReconciler(ports), { wire: (enqueue) => wireSnapshot(ports, enqueue), isHealthy: isOver }),
    row(schedules, scheduleReconciler(ports), { wire: (enqueue) => wireSchedule(ports, enqueue) }),
    row(volumes, volumeReconciler(ports), { wire: (enqueue) => wireVolume(ports, enqueue) }),
    row(defrags, defragReconciler(ports), { wire: (enqueue) => wireDefrag(ports, enqueue), isHealthy: isFinished }),
    row(defragPolicies, defragPolicyReconciler(ports), { wire: (enqueue) => wireDefragPolicy(ports, enqueue) }),
  ];
}

const credentialsFor = (
  client: Client,
  stores: Stores,
  { flags, clock, handshake }: Process,
  clockAheadMs: (withinMs: number) => number,
): SecretCache =>
  new SecretCache({
    clockAheadMs,
    client,
    now: () => clock.now(),
    domain: flags.clusterDomain,
    look: handshake,
    mounted: (cluster) => mountedBy(stores, cluster),
    graceMs: flags.rotationGraceSeconds * 1000,
  });

/** Everything that a reconciler reads from and writes to. */
function portsOf(client: Client, etcd: Etcd, stores: Stores, process: Process) {
  const { flags, clock, keys } = process;
  const states = new ObservedStates(clock);
  const jumps = new ClockJumps(clock);
  const clockAheadMs = (withinMs: number): number => jumps.aheadMs(withinMs);
  const images = imagesOf(flags);
  return {
    client,
    etcd,
    now: () => clock.now(),
    images,
    tenancy: flags.tenancy,
    podOf: (member: EtcdMember, cluster: EtcdCluster) => wantedPod({ member, cluster, images, hasCompany: true }),
    credentials: credentialsFor(client, stores, process, clockAheadMs),
    entropy: keys,
    defragmentRequests: new DefragmentRequests(),
    defragmentations: new DefragmentationLedger(stores.defrags, flags.defragmentationsAtOnce),
    hashes: new HashLedger(),
    spaceTrends: new SpaceTrends(),
    replacements: new ReplacementLedger(stores.clusters, flags.replacementsPerHour, clockAheadMs),
    turns: new TurnLedger(stores.clusters, flags.maxRollingClusters),
    nodeLostAfterMs: flags.nodeLostAfterSeconds * 1000,
    observedMs: (key: string, state: string | undefined) => states.forMs(key, state),
    clockAheadMs,
    operatorImage: flags.operatorImage,
    network: networkOf(flags),
    ...stores,
  };
}

const recorderOf = (client: Client, { clock, log, identity, metrics }: Process): EventRecorder =>
  new EventRecorder({
    client,
    controller: 'etcd-operator',
    instance: identity,
    now: () => clock.now(),
    sleep: (ms, until) => sleep(clock, ms, until),
    onError: (error) => {
      metrics.eventsDropped.inc({ why: 'write' });
      log.warn({ error: String(error) }, 'an Event was not written');
    },
    onDrop: (namespace) => {
      metrics.eventsDropped.inc({ why: 'queue' });
      log.debug({ namespace }, 'an Event was dropped: too many were waiting');
    },
  });

/** Every kind that plans have steps for. */
const resourcesOf = (stores: readonly AnyStore[]): ReadonlyMap<string, Resource> =>
  new Map(stores.map(({ resource }) => [resource.kind, resource]));

/** Starts all controllers; what it returns stops them and waits for the reconciles that run. */
export function startControllers(
  port: Client,
  etcd: Etcd,
  stores: Stores,
  process: Process,
  signal: AbortSignal,
): () => Promise<void> {
  const { clock, log, metrics, parts } = process;
  const { observeOnly, podUser: user, tenancy } = process.flags;
  const settings = { user, storeEndpoints: tenancy.allowedStoreEndpoints };
  const client = isDefault(settings) ? port : creating(port, (object) => withPodSettings(object, settings));
  // A member that did not respond may have another Pod now: the reconcile that this event leads to asks it again.
  stores.pods.onChange((before, after) => {
    const { namespace = '', labels } = (after ?? before)?.metadata ?? {};
    const cluster = labels?.[CLUSTER_LABEL];
    if (cluster !== undefined) etcd.reset(refKey({ namespace, name: cluster }));
  });
  const recorder = recorderOf(client, process);
  const caches = [...parts.stores, stores.certificates];
  const resources = resourcesOf(caches);
  const options = { client, recorder, resources, clock, log, metrics, stores: caches, signal, observeOnly };
  const ports = portsOf(client, etcd, stores, process);
  parts.controllers = controllersOf(ports).map((start) => start(options));
  countSnapshots(metrics.registry, stores.snapshots);
  countPendingCopies(metrics.registry, stores.snapshots);
  measureSchedules(metrics.registry, stores.schedules);
  countReplacements(metrics.registry, ports);
  metrics.gauges(parts);
  metrics.timestamps({ ...EXPIRY, read: () => ports.credentials.expiries() });
  metrics.timestamps({ ...LAST_BACKUP, read: () => lastBackups(stores.schedules, stores.clusters) });
  return async () => {
    await Promise.all(parts.controllers.map((controller) => controller.stop()));
    await recorder.flush();
  };
}
