/** The caches: one row per kind. */
import type { SecretCacheOptions } from '../access/secret-cache.ts';
import { defragsByCluster } from '../api/etcd-defrag.ts';
import { policiesByCluster } from '../api/etcd-defrag-policy.ts';
import { byClusterName } from '../api/etcd-member.ts';
import { byCluster } from '../api/etcd-snapshot-schedule.ts';
import { CLUSTER_LABEL, JOB_NAME_LABEL, MANAGED_SELECTOR, POLICY_LABEL, SCHEDULE_LABEL } from '../api/names.ts';
import { clusterResource } from '../controllers/cluster/controller.ts';
import { certificates } from '../controllers/cluster/credentials/observe-cert-manager.ts';
import { defragResource } from '../controllers/defrag/controller.ts';
import { defragPolicyResource } from '../controllers/defrag-policy/controller.ts';
import { memberResource } from '../controllers/member/controller.ts';
import { DeletedPolicies } from '../controllers/member/observe-deleted-clusters.ts';
import { snapshotResource } from '../controllers/snapshot/controller.ts';
import { scheduleResource } from '../controllers/snapshot-schedule/controller.ts';
import { asksCertManager } from '../domain/cert-manager.ts';
import type { Client } from '../kube/client.ts';
import type { KubeObject } from '../kube/object.ts';
import {
  jobs,
  networkPolicies,
  nodes,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  services,
} from '../kube/resources.ts';
import { ALL_NAMESPACES, type AnyStore, Store } from '../kube/store.ts';
import type { KeySource } from '../pki/issue.ts';
import type { Clock } from '../runtime/clock.ts';
import type { Controller } from '../runtime/controller.ts';
import { unusedCRD } from '../runtime/health.ts';
import type { ApiServerHeartbeat } from '../runtime/heartbeat.ts';
import type { Logger } from '../runtime/log.ts';
import { crdOf, type OptionalCache, startCache } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { Flags } from './flags.ts';

const WITHOUT_NODES =
  'the operator may not read nodes: members of lost nodes are not replaced, and leaders do not hand over before their node is drained. To have both, let the chart create its ClusterRole (manager.clusterRole=true)';

const WITHOUT_POLICIES =
  'the operator may not read NetworkPolicies: networkPolicy of an EtcdCluster has no effect. Update its roles to those of the chart';

export interface Process {
  readonly flags: Flags;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** The identity of this process in Leases and Events. */
  readonly identity: string;
  /** Aborts when the process is stopped. */
  readonly signal: AbortSignal;
  readonly heartbeat: ApiServerHeartbeat;
  /** The random source of certificates. */
  readonly keys: KeySource;
  /** Reads the certificate that a member serves. */
  readonly handshake: SecretCacheOptions['look'];
  /** What the probes report about, as far as it exists yet. */
  readonly parts: Parts;
}

export interface Parts {
  stores: readonly AnyStore[];
  /** Those of `stores` that the operator works without. */
  optional: readonly OptionalCache[];
  controllers: readonly Running[];
  readonly deadWatches: string[];
  /** CRDs that are older than this operator, each as a sentence. */
  outdated: readonly string[];
}

export type Running = Pick<Controller<never, never, never>, 'name' | 'depth' | 'oldestReconcileMs' | 'stop'>;

export type Stores = ReturnType<typeof startStores>;

export function startStores(client: Client, process: Process) {
  const { flags, clock, log, signal, metrics, heartbeat, parts } = process;
  const namespaces = flags.watchNamespaces;
  const onDead = (kind: string, error: unknown): void => {
    const consequence = 'the liveness probe fails, and the kubelet restarts the process';
    log.error({ kind, error: String(error) }, `a watch has ended: ${consequence}`);
    parts.deadWatches.push(kind);
  };
  const options = { client, clock, log, signal, metrics, heartbeat, onDead };
  const cached = <T extends KubeObject>(store: Store<T>): Store<T> => {
    startCache(store, options);
    return store;
  };
  // CRDs may be managed apart from the operator: a kind that is not used must not keep it from all clusters. Once its CRD is
  // installed, the watch fills the cache, and its controller continues.
  const optional = <T extends KubeObject>(store: Store<T>): Store<T> => {
    const whenMissing = unusedCRD(crdOf(store.resource));
    startCache(store, { ...options, whenMissing });
    parts.optional = [...parts.optional, { store, whenMissing }];
    return store;
  };
  /** Nothing waits for a kind that the operator may not read, and it does not ask when it knows so. */
  const ifGranted = <T extends KubeObject>(store: Store<T>, whenMissing: string, isGranted = true): Store<T> => {
    parts.optional = [...parts.optional, { store, whenMissing }];
    if (isGranted) startCache(store, { ...options, whenMissing, mayBeForbidden: true });
    else {
      store.apply(ALL_NAMESPACES, { type: 'missing' });
      log.warn({ kind: store.resource.kind }, whenMissing);
    }
    return store;
  };
  const stores = {
    clusters: cached(new Store(clusterResource, namespaces)),
    members: cached(new Store(memberResource, namespaces, [byClusterName])),
    snapshots: optional(new Store(snapshotResource, namespaces, [SCHEDULE_LABEL])),
    schedules: optional(new Store(scheduleResource, namespaces, [byCluster])),
    defrags: optional(new Store(defragResource, namespaces, [defragsByCluster, POLICY_LABEL])),
    defragPolicies: optional(new Store(defragPolicyResource, namespaces, [policiesByCluster])),
    services: cached(new Store(services, namespaces, [], MANAGED_SELECTOR)),
    pods: cached(new Store(pods, namespaces, [JOB_NAME_LABEL], MANAGED_SELECTOR)),
    jobs: cached(new Store(jobs, namespaces, [SCHEDULE_LABEL], MANAGED_SELECTOR)),
    volumes: cached(new Store(persistentVolumeClaims, namespaces, [CLUSTER_LABEL], MANAGED_SELECTOR)),
    pdbs: cached(new Store(podDisruptionBudgets, namespaces, [], MANAGED_SELECTOR)),
    // Roles that were written for an earlier version do not have it.
    networkPolicies: ifGranted(new Store(networkPolicies, namespaces, [], MANAGED_SELECTOR), WITHOUT_POLICIES),
    nodes: ifGranted(new Store(nodes, []), WITHOUT_NODES, flags.clusterScoped),
  };
  parts.stores = Object.values(stores);
  const whenMissing =
    'cert-manager is not installed, and an EtcdCluster needs it: install cert-manager; retrying every few seconds';
  // cert-manager may not be installed: its CRD is watched once an EtcdCluster needs it, and readiness does not depend on it.
  const onDemand = new Store(certificates, namespaces, [], MANAGED_SELECTOR);
  onFirst(stores.clusters, asksCertManager, () => startCache(onDemand, { ...options, whenMissing }));
  return { ...stores, certificates: onDemand, deletedPolicies: new DeletedPolicies(stores.clusters) };
}

function onFirst<T extends KubeObject>(store: Store<T>, matches: (object: T) => boolean, start: () => void): void {
  let started = false;
  store.onChange((_, after) => {
    if (started || !after || !matches(after)) return;
    started = true;
    start();
  });
}
