/** The snapshot schedule controller: its watches and its reconciler. */

import { Gauge, type Registry } from 'prom-client';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import {
  backedUpAt,
  damagedIn,
  type EtcdSnapshotSchedule,
  type EtcdSnapshotScheduleStatus,
  isBackupOf,
} from '../../api/etcd-snapshot-schedule.ts';
import { BY_CLUSTER, etcdSnapshotSchedules } from '../../api/names.ts';
import { findCondition } from '../../domain/conditions.ts';
import { controllerOf } from '../../domain/ownership.ts';
import { isPaused } from '../../domain/paused.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../../kube/object.ts';
import { jobs } from '../../kube/resources.ts';
import type { AnyStore, Store } from '../../kube/store.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { failureMessage } from '../../runtime/plan.ts';
import { decide } from './decide.ts';
import { LOCATION_USABLE } from './location.ts';
import { observe, type SchedulePorts } from './observe.ts';
import type { Observed } from './observed.ts';

export const scheduleResource: Resource<EtcdSnapshotSchedule> = etcdSnapshotSchedules;

export const scheduleReconciler = (ports: SchedulePorts): Reconciler<Observed, EtcdSnapshotScheduleStatus> => ({
  name: 'snapshot-schedule',
  resource: scheduleResource,
  observe: (key, signal, { failures }) => observe(ports, key, signal, failureMessage(failures)),
  subject: (observed) => observed.object,
  decide,
});

/** Enqueues a schedule when it, its EtcdSnapshots, its Jobs, their Pods or its cluster changes. */
export function wireSchedule(ports: SchedulePorts, enqueue: (key: string) => void): void {
  ports.schedules.onChange((before, after) => enqueue(keyOf((after ?? before) as KubeObject)));
  const makerOf = (object: KubeObject | undefined): void => {
    const owner = object && controllerOf(object);
    if (owner?.kind === etcdSnapshotSchedules.kind)
      enqueue(refKey({ namespace: object?.metadata.namespace ?? '', name: owner.name }));
  };
  const owned: readonly AnyStore[] = [ports.snapshots, ports.jobs];
  for (const store of owned) store.onChange((before, after) => makerOf(after ?? before));
  ports.pods.onChange((before, after) => {
    const pod = (after ?? before) as KubeObject;
    const owner = controllerOf(pod);
    if (owner?.kind !== jobs.kind) return;
    makerOf(ports.jobs.get(refKey({ namespace: pod.metadata.namespace ?? '', name: owner.name })));
  });
  ports.clusters.onChange((before, after) => {
    if (sameJson(standing(before), standing(after))) return;
    const { namespace = '', name = '' } = (after ?? before)?.metadata ?? {};
    for (const schedule of ports.schedules.byIndex(namespace, BY_CLUSTER, name)) enqueue(keyOf(schedule));
  });
}

/** What decides whether snapshots of a cluster are started. */
const standing = (cluster: EtcdCluster | undefined) =>
  cluster && {
    uid: cluster.metadata.uid,
    deleting: cluster.metadata.deletionTimestamp,
    paused: isPaused(cluster),
    size: cluster.spec.storage?.size,
    id: cluster.status?.clusterID,
  };

const labelNames = ['namespace', 'cluster', 'schedule'] as const;

export const LAST_BACKUP = {
  name: 'etcd_operator_last_backup_timestamp_seconds',
  help: 'When the data of the last snapshot that a schedule stored, and that no restore drill found useless, was read, in seconds since 1970.',
  labelNames,
} as const;

type Read = (status: EtcdSnapshotScheduleStatus) => number | undefined;
/** In the unit of their names; a schedule without the figure has no sample. */
const FIGURES: readonly (readonly [name: string, help: string, read: Read])[] = [
  [
    'etcd_operator_last_snapshot_duration_seconds',
    'How long the last stored snapshot of a schedule took to stream and store.',
    ({ lastSuccessful }) => inSeconds(lastSuccessful?.artifact.durationMilliseconds),
  ],
  [
    'etcd_operator_last_snapshot_bytes',
    'Size of the last stored snapshot of a schedule, after compression.',
    ({ lastSuccessful }) => lastSuccessful?.artifact.sizeBytes,
  ],
  [
    'etcd_operator_last_restored_drill_timestamp_seconds',
    'When a restore drill of a schedule last restored a snapshot, in seconds since 1970.',
    ({ lastRestored }) => inSeconds(Date.parse(lastRestored?.time ?? '')),
  ],
  [
    'etcd_operator_drill_recovery_seconds',
    'How long the last restore drill that succeeded took, from the first byte of the download until the restored member had accepted a write.',
    ({ lastDrill }) => lastDrill?.recoverySeconds,
  ],
  [
    'etcd_operator_last_drill_succeeded',
    '1 when the last restore drill of a schedule restored its snapshot, 0 when it failed.',
    ({ lastDrill }) => lastDrill && Number(lastDrill.succeeded),
  ],
  [
    'etcd_operator_location_usable',
    '1 when snapshots can be stored at the destination of a schedule, as its condition LocationUsable says, 0 when not.',
    ({ conditions }) => USABLE[findCondition(conditions, LOCATION_USABLE)?.status ?? ''],
  ],
  [
    'etcd_operator_last_scrub_timestamp_seconds',
    'When the last scrub of a schedule that could be finished ended, in seconds since 1970.',
    ({ scrubbed }) => inSeconds(Date.parse(scrubbed?.at(-1)?.time ?? '')),
  ],
  [
    'etcd_operator_damaged_snapshots',
    'Stored snapshots of a schedule that a scrub found damaged.',
    ({ scrubbed }) => scrubbed && damagedIn({ scrubbed }).length,
  ],
];
/** Unknown is neither: no sample. */
const USABLE: Readonly<Record<string, number>> = { True: 1, False: 0 };
const inSeconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);

export function measureSchedules(registry: Registry, schedules: Store<EtcdSnapshotSchedule>): void {
  for (const [name, help, read] of FIGURES)
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset(); // otherwise deleted schedules would be reported for ever
        for (const { metadata, spec, status } of schedules.all()) {
          const { namespace = '', name: schedule = '' } = metadata;
          const figure = read(status ?? {});
          if (figure !== undefined && !Number.isNaN(figure))
            this.set({ namespace, cluster: spec.clusterRef.name ?? '', schedule }, figure);
        }
      },
    });
}

export function* lastBackups(schedules: Store<EtcdSnapshotSchedule>, clusters: Store<EtcdCluster>) {
  for (const schedule of schedules.all()) {
    const { namespace = '', name = '' } = schedule.metadata;
    const cluster = schedule.spec.clusterRef.name ?? '';
    const { status } = clusters.get(refKey({ namespace, name: cluster })) ?? {};
    const at = isBackupOf(schedule, status?.clusterID) ? backedUpAt(schedule) : undefined;
    if (at !== undefined) yield { namespace, cluster, schedule: name, at };
  }
}
