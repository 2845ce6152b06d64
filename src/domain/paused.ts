/** Whether a cluster is paused: replicas 0, without members that run. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';

/**
 * An edit to replicas 0 waits while the cluster is suspended, its spec is blocked or the PVC of a member is being deleted: the
 * members run, and a user may need a snapshot of them more than ever.
 */
export const isPaused = ({ spec, status }: EtcdCluster): boolean =>
  spec.replicas === 0 && (status?.observed?.replicas ?? 0) === 0;
