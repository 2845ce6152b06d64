/** The snapshot controller: its watches and its reconciler. */

import { Counter, Gauge, type Registry } from 'prom-client';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdSnapshot, type EtcdSnapshotStatus, isCopyPending } from '../../api/etcd-snapshot.ts';
import { etcdSnapshots } from '../../api/names.ts';
import { findCondition, messagesOnly } from '../../domain/conditions.ts';
import { controllerOf } from '../../domain/ownership.ts';
import { isPaused } from '../../domain/paused.ts';
import type { Job } from '../../gen/kube.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../../kube/object.ts';
import { jobs } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { failureMessage } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { observe, type SnapshotPorts, type UnreachableSince } from './observe.ts';
import { clusterNameOf, isOver, type Observed } from './observed.ts';
import { FAILED_REASONS } from './status.ts';

export const snapshotResource: Resource<EtcdSnapshot> = etcdSnapshots;

export function snapshotReconciler(ports: SnapshotPorts): Reconciler<Observed, EtcdSnapshotStatus> {
  const unreachableSince: UnreachableSince = new Map();
  return {
    name: 'snapshot',
    resource: snapshotResource,
    observe: (key, signal, { failures }) => observe(ports, unreachableSince, key, signal, failureMessage(failures)),
    subject: (observed) => observed.object,
    decide,
    isMinor: messagesOnly,
    forget: (key) => unreachableSince.delete(key),
  };
}

/** Enqueues a snapshot when it, its Job, the Job's Pods or its cluster changes. */
export function wireSnapshot(ports: SnapshotPorts, enqueue: (key: string) => void): void {
  ports.snapshots.onChange((before, after) => enqueue(keyOf((after ?? before) as KubeObject)));
  const takerOf = (job: Job | undefined): void => {
    const owner = job && controllerOf(job);
    if (owner?.kind === etcdSnapshots.kind)
      enqueue(refKey({ namespace: job?.metadata.namespace ?? '', name: owner.name }));
  };
  ports.jobs.onChange((before, after) => takerOf(after ?? before));
  ports.pods.onChange((before, after) => {
    const pod = (after ?? before) as KubeObject;
    const owner = controllerOf(pod);
    if (owner?.kind !== jobs.kind) return;
    takerOf(ports.jobs.get(refKey({ namespace: pod.metadata.namespace ?? '', name: owner.name })));
  });
  ports.clusters.onChange((before, after) => {
    if (sameJson(readiness(before), readiness(after))) return;
    const { namespace, name } = (after ?? before)?.metadata ?? {};
    for (const snapshot of ports.snapshots.all())
      if (!isOver(snapshot) && snapshot.metadata.namespace === namespace && clusterNameOf(snapshot) === name)
        enqueue(keyOf(snapshot));
  });
}

/** What a snapshot depends on in its cluster. */
const readiness = (cluster: EtcdCluster | undefined) =>
  cluster && {
    uid: cluster.metadata.uid,
    deleting: cluster.metadata.deletionTimestamp,
    paused: isPaused(cluster),
    id: cluster.status?.clusterID,
    auth: cluster.status?.authEnabled,
  };

/**
 * Counts each snapshot once, when it finishes. Every reason starts at 0: Prometheus sees no increase in a counter whose first
 * value is 1, so an alert would miss the first failure.
 */
export function countSnapshots(registry: Registry, snapshots: Store<EtcdSnapshot>): void {
  const ended = new Counter({
    name: 'etcd_operator_snapshots_total',
    help: 'Snapshots that have ended, by their phase, Complete or Failed, and the reason.',
    labelNames: ['phase', 'reason'] as const,
    registers: [registry],
  });
  ended.inc({ phase: 'Complete', reason: 'SnapshotStored' }, 0);
  for (const reason of FAILED_REASONS) ended.inc({ phase: 'Failed', reason }, 0);
  snapshots.onChange((before, after) => {
    if (!before || isOver(before) || !after || !isOver(after)) return;
    const reason = findCondition(after.status?.conditions, 'Ready')?.reason ?? '';
    ended.inc({ phase: after.status?.phase ?? '', reason });
  });
}

export function countPendingCopies(registry: Registry, snapshots: Store<EtcdSnapshot>): void {
  new Gauge({
    name: 'etcd_operator_copies_pending',
    help: 'Stored snapshots of a cluster whose copy at the second location is still to be made.',
    labelNames: ['namespace', 'cluster'] as const,
    registers: [registry],
    collect() {
      this.reset(); // otherwise deleted clusters would be reported for ever
      for (const snapshot of snapshots.all())
        if (snapshot.spec.copyTo)
          this.inc(
            { namespace: snapshot.metadata.namespace ?? '', cluster: clusterNameOf(snapshot) },
            Number(isCopyPending(snapshot)),
          );
    },
  });
}
