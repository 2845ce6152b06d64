/** The EtcdDefrag controller: its watches and its reconciler. It disrupts nothing: the cluster controller does. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag, EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { BY_CLUSTER, etcdDefrags } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { CRDS_CURRENT } from '../../domain/crds-current.ts';
import { isFinished } from '../../domain/defragmentation.ts';
import { isPaused } from '../../domain/paused.ts';
import { isSuspended } from '../../domain/suspend.ts';
import { keyOf, type Resource } from '../../kube/object.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { decide } from './decide.ts';
import { type DefragPorts, observe } from './observe.ts';
import type { Observed } from './observed.ts';

export const defragResource: Resource<EtcdDefrag> = etcdDefrags;

export const defragReconciler = (ports: DefragPorts): Reconciler<Observed, EtcdDefragStatus> => ({
  name: 'defrag',
  resource: defragResource,
  observe: (key, signal) => observe(ports, key, signal),
  subject: (observed) => observed.object,
  decide,
});

/** Enqueues the EtcdDefrags of a cluster that have not finished when one of them, or the cluster, changes. */
export function wireDefrag(ports: DefragPorts, enqueue: (key: string) => void): void {
  const ofCluster = (namespace = '', name = ''): void => {
    for (const defrag of ports.defrags.byIndex(namespace, BY_CLUSTER, name))
      if (!isFinished(defrag)) enqueue(keyOf(defrag));
  };
  ports.defrags.onChange((before, after) => {
    const object = after ?? before;
    if (!object) return;
    enqueue(keyOf(object));
    ofCluster(object.metadata.namespace, object.spec.clusterRef.name);
  });
  ports.clusters.onChange((before, after) => {
    if (sameJson(standing(before), standing(after))) return;
    const { namespace, name } = (after ?? before)?.metadata ?? {};
    ofCluster(namespace, name);
  });
}

/** What the status of an EtcdDefrag depends on. */
const standing = (cluster: EtcdCluster | undefined) =>
  cluster && {
    uid: cluster.metadata.uid,
    deleting: cluster.metadata.deletionTimestamp,
    paused: isPaused(cluster),
    suspended: isSuspended(cluster),
    crds: findCondition(cluster.status?.conditions, CRDS_CURRENT)?.message,
    available: findCondition(cluster.status?.conditions, 'Available')?.reason,
    alarms: cluster.status?.members?.flatMap(({ alarms = [] }) => alarms),
    busy: cluster.status?.defragmentation?.uid,
  };
