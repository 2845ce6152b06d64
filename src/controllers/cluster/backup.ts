/** Whether a backup is young enough: against the strictest recovery point that a schedule of the cluster states. */
import type { ConditionUpdate } from '../../api/conditions.ts';
import { backedUpAt, type EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { parseDuration } from '../../lib/duration.ts';
import { iso } from '../../lib/time.ts';
import type { Observed } from './observed.ts';

export const BACKUP_FRESH = 'BackupFresh';

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

/** A schedule names its cluster: after that was made anew, its last snapshot is one of the cluster before. */
const isOfThis = (o: Observed, { status }: EtcdSnapshotSchedule): boolean => {
  const [told, known] = [status?.lastSuccessful?.artifact.clusterID, o.cluster.status?.clusterID];
  return told === undefined || known === undefined || told === known;
};

/** The strictest demand, the newest backup of any schedule, and when it is too old: without one, counted from the beginning. */
function freshness(o: Observed) {
  const [strictest] = o.schedules.flatMap(demandOf).sort((a, b) => a.ms - b.ms || a.created - b.created);
  if (!strictest) return undefined;
  const all = o.schedules.filter((each) => isOfThis(o, each)).flatMap((schedule) => backedUpAt(schedule) ?? []);
  const newest = all.length === 0 ? undefined : Math.max(...all);
  const began = Math.max(strictest.created, Date.parse(o.cluster.metadata.creationTimestamp ?? '') || 0);
  return { ...strictest, newest, staleAt: (newest ?? began) + strictest.ms };
}

export function backupConditions(o: Observed): readonly ConditionUpdate[] {
  const found = freshness(o);
  if (!found) return [];
  const { schedule, recoveryPoint, newest, staleAt } = found;
  const said = (status: ConditionUpdate['status'], reason: string, message: string): readonly ConditionUpdate[] => [
    { type: BACKUP_FRESH, status, reason, message },
  ];
  const point = `the recovery point of ${recoveryPoint} in EtcdSnapshotSchedule ${schedule}`;
  if (o.now < staleAt)
    return newest === undefined
      ? said('Unknown', 'NoBackupYet', `there is no backup yet, and ${point} has not passed since it was made`)
      : said('True', 'Fresh', `the newest backup is within ${point}`);
  const age = newest === undefined ? 'there is no backup' : `the newest backup is of ${iso(newest)}`;
  return said('False', 'BackupTooOld', `${age}, which is beyond ${point}: see in its status why none was stored since`);
}

/** The moment at which it becomes too old. */
export function backupRequeueMs(o: Observed): number | undefined {
  const left = (freshness(o)?.staleAt ?? 0) - o.now;
  return left > 0 ? left : undefined;
}
