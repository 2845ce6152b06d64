/** The snapshot that bootstrap.restore refers to, by name or as the newest of a schedule. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { SCHEDULE_LABEL } from '../../api/names.ts';
import { controllerOf, identity } from '../../domain/ownership.ts';
import { resolveSource, withChosenSource } from '../../domain/restore-source.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { ClusterFacts } from './observed.ts';

export interface RestorePorts {
  /** Indexed by cluster. */
  readonly schedules: Store<EtcdSnapshotSchedule>;
  /** Indexed by their schedule. */
  readonly snapshots: Store<EtcdSnapshot>;
}

/** The choice is latched with the first member: a later snapshot of the schedule does not replace it. */
export function observeRestore(
  { snapshots, schedules }: RestorePorts,
  cluster: EtcdCluster,
): Pick<ClusterFacts, 'cluster' | 'restoreSource' | 'restoreBlockedBy'> {
  const { restore, clusterID } = cluster.status ?? {};
  const { namespace } = identity(cluster);
  if (restore || clusterID !== undefined) return { cluster: withChosenSource(cluster) };
  const resolved = resolveSource(cluster.spec.bootstrap?.restore?.source, {
    snapshot: (name) => snapshots.get(refKey({ namespace, name })),
    schedule: (name) => schedules.get(refKey({ namespace, name })),
    snapshotsOf: (schedule) =>
      snapshots
        .byIndex(namespace, SCHEDULE_LABEL, identity(schedule).name)
        .filter((each) => controllerOf(each)?.uid === identity(schedule).uid),
  });
  if (!resolved) return { cluster };
  if ('blocked' in resolved) return { cluster, restoreBlockedBy: resolved.blocked };
  return { cluster: withChosenSource(cluster, resolved.chosen), restoreSource: resolved.chosen };
}
