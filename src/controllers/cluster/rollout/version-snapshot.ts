/** The snapshot before the minor of a cluster is changed: where a schedule has a destination, there is a recent one first. */
import type { EtcdSnapshot } from '../../../api/etcd-snapshot.ts';
import {
  backedUpAt,
  type EtcdSnapshotSchedule,
  isBackupOf,
  uselessBackup,
} from '../../../api/etcd-snapshot-schedule.ts';
import { API_VERSION, versionSnapshotName } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { RECENT_BACKUP_MS, VERSION_SNAPSHOT_MS } from '../../../domain/timing.ts';
import { minorName } from '../../../domain/version-path.ts';
import { present } from '../../../lib/present.ts';
import { type ClusterFacts, type Decided, type Observed } from '../observed.ts';
import { targetMinor } from './version-facts.ts';

/** The schedule whose destination is used: one that is not suspended, if there is one. */
const scheduleOf = ({ schedules }: ClusterFacts): EtcdSnapshotSchedule | undefined =>
  schedules
    .filter((each) => !isBeingDeleted(each))
    .toSorted((a, b) => Number(a.spec.suspend === true) - Number(b.spec.suspend === true))[0];

/**
 * The name of the snapshot that is taken now, and of the one before it. Another edit of the cluster gets another snapshot, and so
 * does a change that has waited for long: the spec of an EtcdSnapshot cannot change, and its data is as old as it.
 */
export function snapshotNames(o: ClusterFacts): readonly [string, string] {
  const { name, uid } = identity(o.cluster);
  const period = Math.floor(o.now / VERSION_SNAPSHOT_MS);
  const nameIn = (p: number): string =>
    versionSnapshotName(name, `${uid} ${minorName(targetMinor(o))} ${p}`, o.cluster.metadata.generation ?? 0);
  return [nameIn(period), nameIn(period - 1)];
}

const takenAt = ({ status }: EtcdSnapshot): number =>
  Date.parse(status?.artifact?.takenAt ?? status?.completionTime ?? '') || 0;
const isStored = ({ status }: EtcdSnapshot): boolean => status?.phase === 'Complete' && status.artifact !== undefined;

/** The first of these that may be used: one that has failed, or is old, has a successor. */
export const chosenSnapshot = (o: ClusterFacts, stored: readonly EtcdSnapshot[]): EtcdSnapshot | undefined => {
  const [current] = snapshotNames(o);
  const isUsable = (each: EtcdSnapshot): boolean =>
    isStored(each) ? o.now - takenAt(each) < VERSION_SNAPSHOT_MS : each.status?.phase !== 'Failed';
  return stored.find((each) => each.metadata.name === current || (!isBeingDeleted(each) && isUsable(each)));
};

const hasRecentBackup = (o: ClusterFacts): boolean =>
  o.schedules.some((each) => {
    const at = isBackupOf(each, o.cluster.status?.clusterID) && !uselessBackup(each) ? backedUpAt(each) : undefined;
    return at !== undefined && o.now - at < RECENT_BACKUP_MS;
  });

const blocked = (reason: string, message: string): Blocked => ({ reason, message });

/** Why there is no snapshot to go back to. */
export function snapshotBlockedBy(o: ClusterFacts): Blocked | undefined {
  if (!scheduleOf(o) || hasRecentBackup(o)) return undefined;
  const { versionSnapshot: taken } = o;
  const [next] = snapshotNames(o);
  if (!taken) return blocked('TakingSnapshot', `EtcdSnapshot ${next} is taken before the first member is changed`);
  const { name } = taken.metadata;
  if (taken.status?.phase === 'Failed') {
    const why = findCondition(taken.status.conditions, 'Ready')?.message ?? 'see its status';
    const remedy = 'Delete the EtcdSnapshot, and another one is taken';
    return blocked('SnapshotFailed', `EtcdSnapshot ${name} has failed: ${why}. ${remedy}`);
  }
  return isStored(taken) ? undefined : blocked('TakingSnapshot', `waiting until EtcdSnapshot ${name} is stored`);
}

function snapshotFor(o: ClusterFacts, { spec }: EtcdSnapshotSchedule): EtcdSnapshot {
  const { clusterRef, destination, layout, compression, encryption } = spec;
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: { name: snapshotNames(o)[0], namespace: identity(o.cluster).namespace },
    spec: { clusterRef, destination, ...present({ layout, compression, encryption }) },
  };
}

/** Creates the EtcdSnapshot that the change waits for. */
export function takeVersionSnapshot(o: Observed, waitsFor: readonly Blocked[]): Decided {
  const schedule = scheduleOf(o);
  if (waitsFor[0]?.reason !== 'TakingSnapshot' || o.versionSnapshot || !schedule) return undefined;
  const object = snapshotFor(o, schedule);
  const message = `taking EtcdSnapshot ${object.metadata.name} before the members get etcd ${minorName(targetMinor(o))}`;
  return {
    message,
    steps: [{ do: 'create', object }],
    event: { type: 'Normal', reason: 'TakingSnapshot', note: message },
  };
}
