/** Schedules, snapshots and the recovery point. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { backedUpAt, type EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { findCondition } from '../../domain/conditions.ts';
import { present } from '../../lib/present.ts';
import type { ClusterFacts } from './facts.ts';

export interface ScheduleRow {
  readonly name: string;
  readonly cluster: string;
  readonly schedule: string;
  readonly suspended: boolean;
  readonly lastSuccess?: number;
  readonly lastSnapshot?: string;
  readonly next?: number;
  readonly lastFailure?: { readonly name: string; readonly at: number; readonly reason: string };
  readonly drill?: {
    readonly name: string;
    readonly at: number;
    readonly succeeded: boolean;
    readonly reason?: string;
  };
}

export interface SnapshotRow {
  readonly name: string;
  readonly cluster: string;
  readonly phase: string;
  readonly at?: number;
  readonly bytes?: number;
  readonly revision?: number;
  readonly uri?: string;
  readonly reason?: string;
}

/** On the screen of a cluster. */
const MAX_SNAPSHOTS = 3;

/** Milliseconds since 1970. */
export const time = (text: string | undefined): number | undefined => {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? undefined : at;
};

/** Of schedules and of single snapshots. */
export function recoveryPoint({ schedules, snapshots }: ClusterFacts): number | undefined {
  const single = snapshots
    .filter(({ status }) => status?.phase === 'Complete')
    .map(({ status }) => time(status?.artifact?.takenAt) ?? time(status?.completionTime));
  const all = [...schedules.map(backedUpAt), ...single].filter((at) => at !== undefined);
  return all.length === 0 ? undefined : Math.max(...all);
}

export function scheduleRow({ metadata, spec, status }: EtcdSnapshotSchedule): ScheduleRow {
  const { lastSuccessful, lastFailed, lastDrill } = status ?? {};
  const [failedAt, drilledAt] = [time(lastFailed?.time), time(lastDrill?.time)];
  return {
    name: metadata.name ?? '',
    cluster: spec.clusterRef.name ?? '',
    schedule: spec.schedule + (spec.timeZone === undefined ? '' : ` ${spec.timeZone}`),
    suspended: spec.suspend === true,
    ...present({
      lastSuccess: time(lastSuccessful?.time),
      lastSnapshot: lastSuccessful?.name,
      next: time(status?.nextScheduleTime),
    }),
    ...(lastFailed &&
      failedAt !== undefined && {
        lastFailure: { name: lastFailed.name, at: failedAt, reason: lastFailed.reason },
      }),
    ...(lastDrill &&
      drilledAt !== undefined && {
        drill: {
          name: lastDrill.name,
          at: drilledAt,
          succeeded: lastDrill.succeeded,
          ...present({ reason: lastDrill.reason }),
        },
      }),
  };
}

/** The newest first. */
export const snapshotRows = (snapshots: readonly EtcdSnapshot[]): readonly SnapshotRow[] =>
  snapshots
    .map(({ metadata, spec, status }): SnapshotRow => {
      const ready = findCondition(status?.conditions, 'Ready');
      return {
        name: metadata.name ?? '',
        cluster: spec.clusterRef.name ?? '',
        phase: status?.phase ?? 'Pending',
        ...present({
          at: time(status?.completionTime) ?? time(status?.startTime) ?? time(metadata.creationTimestamp),
          bytes: status?.artifact?.sizeBytes,
          revision: status?.artifact?.revision,
          uri: status?.artifact?.uri,
          reason: ready?.status === 'True' ? undefined : ready?.reason,
        }),
      };
    })
    .toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0));

export const latestSnapshots = ({ snapshots }: ClusterFacts): readonly SnapshotRow[] =>
  snapshotRows(snapshots).slice(0, MAX_SNAPSHOTS);
