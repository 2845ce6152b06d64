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
import { iso } from '../../../lib/time.ts';
import { type ClusterFacts, type Decided, type Observed } from '../observed.ts';
import { targetMinor } from './version-facts.ts';

/** The schedule whose destination is used: one that is not suspended, if there is one. */
const scheduleOf = ({ schedules }: ClusterFacts): EtcdSnapshotSchedule | undefined =>
  schedules
    .filter((each) => !isBeingDeleted(each))
    .toSorted((a, b) => Number(a.spec.suspend === true) - Number(b.spec.suspend === true))[0];

/** Another edit of the cluster gets another snapshot: the spec of an EtcdSnapshot cannot change, and its data is as old as it. */
export const nameFor = ({ cluster }: Pick<ClusterFacts, 'cluster'>, minor: number): string => {
  const { name, uid } = identity(cluster);
  return versionSnapshotName(name, `${uid} ${minorName(minor)}`, cluster.metadata.generation ?? 0);
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
  const name = nameFor(o, targetMinor(o));
  if (!taken) return blocked('TakingSnapshot', `EtcdSnapshot ${name} is taken before the first member is changed`);
  const { phase, artifact } = taken.status ?? {};
  const remedy = 'Delete the EtcdSnapshot, and another one is taken';
  if (phase === 'Failed') {
    const why = findCondition(taken.status?.conditions, 'Ready')?.message ?? 'see its status';
    return blocked('SnapshotFailed', `EtcdSnapshot ${name} has failed: ${why}. ${remedy}`);
  }
  if (phase !== 'Complete' || !artifact)
    return blocked('TakingSnapshot', `waiting until EtcdSnapshot ${name} is stored`);
  const at = Date.parse(artifact.takenAt ?? taken.status?.completionTime ?? '') || 0;
  return o.now - at < VERSION_SNAPSHOT_MS
    ? undefined
    : blocked('SnapshotTooOld', `EtcdSnapshot ${name} is from ${iso(at)}, more than a day old. ${remedy}`);
}

function snapshotFor(o: ClusterFacts, { spec }: EtcdSnapshotSchedule): EtcdSnapshot {
  const { clusterRef, destination, layout, compression, encryption } = spec;
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdSnapshot',
    metadata: { name: nameFor(o, targetMinor(o)), namespace: identity(o.cluster).namespace },
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
