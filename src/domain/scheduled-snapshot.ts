/** An EtcdSnapshot as a schedule takes it: at a scheduled minute by the operator, or now by a user. */
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../api/etcd-snapshot-schedule.ts';
import { API_VERSION, etcdSnapshotSchedules, SCHEDULE_LABEL, scheduledSnapshotName } from '../api/names.ts';
import { present } from '../lib/present.ts';
import { identity, ownedBy } from './ownership.ts';

export const scheduleLabels = (schedule: EtcdSnapshotSchedule) => ({ [SCHEDULE_LABEL]: identity(schedule).name });

/** The EtcdSnapshot is only a record: the stored data is kept when it is deleted, with or without the schedule. */
export function scheduledSnapshot(schedule: EtcdSnapshotSchedule, slot: number): EtcdSnapshot {
  const { clusterRef, destination, layout, compression, encryption, resources, copyTo } = schedule.spec;
  const { name, namespace } = identity(schedule);
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: {
      name: scheduledSnapshotName(name, slot),
      labels: scheduleLabels(schedule),
      namespace,
      ownerReferences: ownedBy(etcdSnapshotSchedules, schedule),
    },
    spec: {
      clusterRef,
      destination,
      ...present({ layout, compression, encryption, resources, copyTo: copyTo && { destination: copyTo.destination } }),
    },
  };
}
