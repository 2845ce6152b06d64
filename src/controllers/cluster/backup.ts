/** The condition BackupFresh: the age of the newest backup against the strictest recovery point of the schedules of the cluster. */
import { backedUpAt, type EtcdSnapshotSchedule, isBackupOf, uselessBackup } from '../../api/etcd-snapshot-schedule.ts';
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

/** The strictest recovery point, the newest backup of any schedule, and when it is too old. Without a backup, counted from the creation of schedule and cluster. */
function freshness(o: ClusterFacts) {
  const [strictest] = o.schedules.flatMap(demandOf).sort((a, b) => a.ms - b.ms || a.created - b.created);
  if (!strictest) return undefined;
  const own = o.schedules.filter((each) => isBackupOf(each, o.cluster.status?.clusterID));
  const all = own.flatMap((schedule) => backedUpAt(schedule) ?? []);
  const newest = all.length === 0 ? undefined : Math.max(...all);
  const createdAt = Math.max(strictest.created, Date.parse(o.cluster.metadata.creationTimestamp ?? '') || 0);
  return {
    ...strictest,
    newest,
    useless: own.flatMap((each) => uselessBackup(each) ?? []),
    staleAt: (newest ?? createdAt) + strictest.ms,
  };
}

export function backupConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const found = freshness(o);
  if (!found) return [];
  const { schedule, recoveryPoint, newest, staleAt, useless } = found;
  const point = `the recovery point of ${recoveryPoint} in EtcdSnapshotSchedule ${schedule}`;
  if (o.cluster.spec.replicas === 0) {
    const last = newest === undefined ? 'there is no backup' : `the newest backup is from ${iso(newest)}`;
    return [backupFresh('Unknown', 'Paused', `the cluster is paused, so nothing is backed up: ${last}`)];
  }
  const wait = `there is no backup yet, and ${point} has not passed since the schedule or the cluster was created`;
  const noneYet = backupFresh('Unknown', 'NoBackupYet', wait);
  if (o.now < staleAt)
    return [newest === undefined ? noneYet : backupFresh('True', 'Fresh', `the newest backup is within ${point}`)];
  const [bad] = useless;
  const kind = bad ? 'backup that a restore drill restored' : 'backup';
  const age = newest === undefined ? `there is no ${kind}` : `the newest ${kind} is from ${iso(newest)}`;
  const then = bad
    ? `${bad.name} was stored later, and cannot be restored (${bad.reason}): find the cause, and take another snapshot`
    : 'see its status for why no backup was stored since';
  return [backupFresh('False', 'BackupTooOld', `${age}, which exceeds ${point}: ${then}`)];
}

/** When the newest backup becomes too old. */
export function backupRequeueMs(o: ClusterFacts): number | undefined {
  const left = o.cluster.spec.replicas === 0 ? 0 : (freshness(o)?.staleAt ?? 0) - o.now;
  return left > 0 ? left : undefined;
}
