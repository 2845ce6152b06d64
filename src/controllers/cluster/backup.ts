/** The condition BackupFresh: the age of the newest backup against the strictest recovery point of the schedules of the cluster. */
import { backedUpAt, type EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { type ConditionUpdate, conditionOf } from '../../domain/conditions.ts';
import { parseDuration } from '../../lib/duration.ts';
import { iso } from '../../lib/time.ts';
import type { ClusterFacts } from './observed.ts';

export const BACKUP_FRESH = 'BackupFresh';
const backupFresh = conditionOf(BACKUP_FRESH);

interface Demand {
  readonly schedule: string;
  readonly recoveryPoint: string;
  readonly ms: number;
  readonly created: number;
}

const demandOf = ({ metadata, spec }: EtcdSnapshotSchedule): readonly Demand[] => {
  const { recoveryPoint } = spec;
  const ms = recoveryPoint === undefined ? undefined : parseDuration(recoveryPoint);
  if (recoveryPoint === undefined || ms === undefined || metadata.deletionTimestamp !== undefined) return [];
  return [
    { schedule: metadata.name ?? '', recoveryPoint, ms, created: Date.parse(metadata.creationTimestamp ?? '') || 0 },
  ];
};

/** A schedule refers to its cluster by name: after the cluster was recreated, its last snapshot is that of the previous cluster. */
const isOfThis = (o: ClusterFacts, { status }: EtcdSnapshotSchedule): boolean => {
  const [stored, current] = [status?.lastSuccessful?.artifact.clusterID, o.cluster.status?.clusterID];
  return stored === undefined || current === undefined || stored === current;
};

/** The strictest recovery point, the newest backup of any schedule, and when it is too old. Without a backup, counted from the creation of schedule and cluster. */
function freshness(o: ClusterFacts) {
  const [strictest] = o.schedules.flatMap(demandOf).sort((a, b) => a.ms - b.ms || a.created - b.created);
  if (!strictest) return undefined;
  const all = o.schedules.filter((each) => isOfThis(o, each)).flatMap((schedule) => backedUpAt(schedule) ?? []);
  const newest = all.length === 0 ? undefined : Math.max(...all);
  const createdAt = Math.max(strictest.created, Date.parse(o.cluster.metadata.creationTimestamp ?? '') || 0);
  return { ...strictest, newest, staleAt: (newest ?? createdAt) + strictest.ms };
}

export function backupConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const found = freshness(o);
  if (!found) return [];
  const { schedule, recoveryPoint, newest, staleAt } = found;
  const point = `the recovery point of ${recoveryPoint} in EtcdSnapshotSchedule ${schedule}`;
  const wait = `there is no backup yet, and ${point} has not passed since the schedule or the cluster was created`;
  const noneYet = backupFresh('Unknown', 'NoBackupYet', wait);
  if (o.now < staleAt)
    return [newest === undefined ? noneYet : backupFresh('True', 'Fresh', `the newest backup is within ${point}`)];
  const age = newest === undefined ? 'there is no backup' : `the newest backup is from ${iso(newest)}`;
  const message = `${age}, which exceeds ${point}: see its status for why no backup was stored since`;
  return [backupFresh('False', 'BackupTooOld', message)];
}

/** When the newest backup becomes too old. */
export function backupRequeueMs(o: ClusterFacts): number | undefined {
  const left = (freshness(o)?.staleAt ?? 0) - o.now;
  return left > 0 ? left : undefined;
}
