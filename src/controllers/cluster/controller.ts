/** The cluster controller: which events enqueue which cluster, and its observe, decide and execute functions. */

import { Gauge, type Registry } from 'prom-client';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { backedUpAt, type EtcdSnapshotSchedule, uselessBackup } from '../../api/etcd-snapshot-schedule.ts';
import { CLUSTER_LABEL, etcdClusters, QUARANTINE_LABEL } from '../../api/names.ts';
import { asksCertManager, certificateKind } from '../../domain/cert-manager.ts';
import { findCondition } from '../../domain/conditions.ts';
import { isUnderWay } from '../../domain/defragmentation.ts';
import { RATE_LIMITED } from '../../domain/disruption.ts';
import { isCordoned } from '../../domain/node.ts';
import { controllerOf } from '../../domain/ownership.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../../kube/object.ts';
import { networkPolicies, podDisruptionBudgets, pods, services } from '../../kube/resources.ts';
import type { AnyStore, Store } from '../../kube/store.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import type { Priority } from '../../runtime/queue.ts';
import type { ClusterCall } from './calls.ts';
import { isMinor } from './coalesce.ts';
import { decide } from './decide.ts';
import { startedRun, waitsForOthers } from './defragmentation.ts';
import { execute } from './execute.ts';
import { type ClusterPorts, observe, readinessKey, seedKey } from './observe.ts';
import { remedyKey } from './observe-defragmentation.ts';
import type { Gathered } from './observed.ts';

export const clusterResource: Resource<EtcdCluster> = etcdClusters;

export const clusterReconciler = (ports: ClusterPorts): Reconciler<Gathered, EtcdClusterStatus, ClusterCall> => ({
  name: 'cluster',
  resource: clusterResource,
  observe: (key, signal, memory) => observe(ports, key, signal, memory),
  subject: (observed) => observed.cluster,
  decide,
  admit: (o, { latch, steps }) =>
    ports.replacements.claim(o.cluster, latch, o.now) &&
    ports.turns.claim(o.cluster, latch, o.now) &&
    ports.defragmentations.claim(o.cluster, startedRun(o, steps), waitsForOthers(o) !== undefined),
  call: (call, signal) => execute(ports, call, signal),
  isMinor,
  upkeepKinds: [services.kind, podDisruptionBudgets.kind, networkPolicies.kind, certificateKind.kind],
  forget: (key) => {
    ports.etcd.forget(key);
    ports.defragmentRequests.forget(key);
    ports.defragmentations.forget(key);
    ports.credentials.drop(key);
    ports.hashes.forget(key);
    ports.spaceTrends.forget(key);
    ports.observedMs(seedKey(key), undefined);
    ports.observedMs(remedyKey(key), undefined);
  },
});

/** A snapshot, a schedule or a defragmentation. */
type Request = KubeObject & { readonly spec: { readonly clusterRef: { readonly name?: string } } };

/**
 * Enqueues the cluster whenever one of its objects changes. New clusters get low priority: when a thousand are created at once,
 * clusters in progress finish and broken ones are repaired first.
 */
export function wireCluster(ports: ClusterPorts, enqueue: (key: string, reason?: Priority) => void): void {
  const enqueueClusterOf = ({ metadata: { namespace = '' }, spec }: Request): void => {
    const { name } = spec.clusterRef;
    if (name !== undefined) enqueue(refKey({ namespace, name }));
  };
  ports.clusters.onChange((before, after) =>
    enqueue(keyOf((after ?? before) as KubeObject), after && !after.status ? 'low' : 'normal'),
  );
  ports.clusters.onChange((before, after) => {
    for (const key of ports.turns.waiting(before, after, ports.now())) enqueue(key);
  });
  // cert-manager was installed, or its watch has recovered: clusters that wait for it receive no other event.
  ports.certificates.onSynced(() => {
    for (const cluster of ports.clusters.all()) if (asksCertManager(cluster)) enqueue(keyOf(cluster));
  });
  ports.schedules.onChange((before, after) => {
    if (sameJson(freshnessInputs(before), freshnessInputs(after))) return;
    for (const schedule of [before, after]) if (schedule) enqueueClusterOf(schedule);
  });
  // A change of the minor waits for its snapshot, and a defragmentation for the end of a stream.
  ports.snapshots.onChange((before, after) => {
    if (sameJson(waitedFor(before), waitedFor(after))) return;
    if (!after && !before?.status?.streamsFrom) return; // retention deletes many
    const snapshot = after ?? before;
    if (snapshot) enqueueClusterOf(snapshot);
  });
  ports.defrags.onChange((before, after) => {
    const defrag = after ?? before;
    if (defrag) enqueueClusterOf(defrag);
    const next = before && isUnderWay(before) && !(after && isUnderWay(after)) && ports.defragmentations.next();
    if (next) enqueue(next);
  });
  // Created and bound PVCs change nothing for the cluster, and each would cost a reconcile.
  ports.volumes.onChange((before, after) => {
    const { metadata } = after ?? before ?? {};
    const name = metadata?.labels?.[CLUSTER_LABEL];
    if (name !== undefined && !sameJson(fateOf(before), fateOf(after)))
      enqueue(refKey({ namespace: metadata?.namespace ?? '', name }));
  });
  // The leader hands over before its Pod is evicted. The heartbeats of nodes change nothing for a cluster.
  ports.nodes.onChange((before, after) => {
    if (!after || !isCordoned(after) || (before && isCordoned(before))) return;
    for (const pod of ports.pods.all()) {
      const cluster = pod.spec?.nodeName === after.metadata.name ? clusterOf(pod) : undefined;
      if (cluster !== undefined) enqueue(refKey({ namespace: pod.metadata.namespace ?? '', name: cluster }));
    }
  });
  ports.members.onChange((before, after) => {
    if (before && !after) ports.observedMs(readinessKey(keyOf(before)), undefined);
  });
  const owned: readonly AnyStore[] = [ports.members, ports.services, ports.pods, ports.pdbs, ports.certificates];
  for (const store of [...owned, ...(ports.networkPolicies ? [ports.networkPolicies] : [])])
    store.onChange((before, after) => {
      const { kind } = store.resource;
      if (before && after && sameJson(relevant(kind, before), relevant(kind, after))) return;
      for (const object of [before, after]) {
        const cluster = object && clusterOf(object);
        if (cluster === undefined) continue;
        const key = refKey({ namespace: object?.metadata.namespace ?? '', name: cluster });
        if (store === ports.certificates) ports.credentials.forget(key); // cert-manager has just written its Secret
        enqueue(key);
      }
    });
}

/** A PVC is being deleted, or quarantined. One whose labels come back may be so when the cache first shows it. */
const fateOf = (pvc: PersistentVolumeClaim | undefined) => [
  pvc?.metadata.deletionTimestamp ?? '',
  pvc?.metadata.labels?.[QUARANTINE_LABEL] ?? '',
];

/** The fields of a snapshot that a cluster waits for. */
const waitedFor = (snapshot: EtcdSnapshot | undefined) => [snapshot?.status?.phase, snapshot?.status?.streamsFrom];

/** The fields of a schedule that the condition BackupFresh depends on. */
const freshnessInputs = (schedule: EtcdSnapshotSchedule | undefined) =>
  schedule && {
    uid: schedule.metadata.uid,
    cluster: schedule.spec.clusterRef.name,
    deleting: schedule.metadata.deletionTimestamp,
    point: schedule.spec.recoveryPoint,
    at: backedUpAt(schedule),
    useless: uselessBackup(schedule),
  };

/** The fields that a reconcile reads. The status of a PodDisruptionBudget and the labels of a Pod change often, and would enqueue the cluster for nothing. */
function relevant(kind: string, object: KubeObject & { readonly spec?: unknown; readonly status?: unknown }): unknown {
  const metadata = { ...object.metadata, resourceVersion: undefined };
  if (kind === podDisruptionBudgets.kind) return [metadata, object.spec];
  if (kind === pods.kind) return [{ ...metadata, labels: undefined, annotations: undefined }, object.status];
  return object;
}

const clusterOf = (object: KubeObject): string | undefined => {
  const owner = controllerOf(object);
  return owner?.kind === etcdClusters.kind ? owner.name : object.metadata.labels?.[CLUSTER_LABEL];
};

/** Whether the cluster gets low priority when the operator starts. */
export const isComplete = (
  members: Store<EtcdMember>,
  { metadata: { namespace = '', name = '' }, spec }: EtcdCluster,
  isReady: (member: EtcdMember) => boolean,
): boolean => {
  const own = members.byIndex(namespace, CLUSTER_LABEL, name);
  return own.length === spec.replicas && own.every(isReady);
};

/** How close the fleet is to the limit of replacements, and how many clusters wait for it. */
export function countReplacements(
  registry: Registry,
  { clusters, replacements, now }: Pick<ClusterPorts, 'clusters' | 'replacements' | 'now'>,
): void {
  const gauge = (name: string, help: string, read: () => number): Gauge =>
    new Gauge({
      name: `etcd_operator_replacements_${name}`,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  const waits = ({ status }: EtcdCluster): boolean =>
    findCondition(status?.conditions, 'Degraded')?.reason === RATE_LIMITED;
  const used =
    'Members of all clusters that were replaced in the last hour although their volumes may have been intact.';
  gauge('last_hour', used, () => replacements.rate(now()).used);
  gauge('limit', 'How many of them the operator replaces per hour.', () => replacements.rate(now()).limit);
  const waiting = 'Clusters with a lost member that is not replaced because of this limit.';
  gauge('waiting', waiting, () => [...clusters.all()].filter(waits).length);
}
