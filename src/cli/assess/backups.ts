/** Schedules, snapshots and the recovery point. */
import { backedUpAt, type EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { findCondition } from '../../domain/conditions.ts';
import { present } from '../../lib/present.ts';
import type { ClusterFacts } from './facts.ts';

export interface ScheduleRow {
  readonly name: string;
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
  readonly phase: string;
  readonly at?: number;
  readonly bytes?: number;
  readonly revision?: number;
  readonly reason?: string;
}

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

function scheduleRow({ metadata, spec, status }: EtcdSnapshotSchedule): ScheduleRow {
  const { lastSuccessful, lastFailed, lastDrill } = status ?? {};
  const [failedAt, drilledAt] = [time(lastFailed?.time), time(lastDrill?.time)];
  return {
    name: metadata.name ?? '',
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

export const snapshotRows = ({ snapshots }: ClusterFacts): readonly SnapshotRow[] =>
  snapshots
    .map(({ metadata, status }): SnapshotRow => {
      const ready = findCondition(status?.conditions, 'Ready');
      return {
        name: metadata.name ?? '',
        phase: status?.phase ?? 'Pending',
        ...present({
          at: time(status?.completionTime) ?? time(status?.startTime) ?? time(metadata.creationTimestamp),
          bytes: status?.artifact?.sizeBytes,
          revision: status?.artifact?.revision,
          reason: ready?.status === 'True' ? undefined : ready?.reason,
        }),
      };
    })
    .toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0))
    .slice(0, MAX_SNAPSHOTS);

export const scheduleRows = ({ schedules }: ClusterFacts): readonly ScheduleRow[] => schedules.map(scheduleRow);
