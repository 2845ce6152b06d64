/** The snapshot that a cluster is restored from, where its spec names an EtcdSnapshot or an EtcdSnapshotSchedule instead of an object in a store. */
import type { RestoreSource } from '../api/bootstrap.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import {
  damagedIn,
  type EtcdSnapshotSchedule,
  unrestorableBackup,
  uselessBackup,
} from '../api/etcd-snapshot-schedule.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';
import { present } from '../lib/present.ts';
import { objectKeyOf } from './agent-task.ts';
import type { Blocked } from './disruption.ts';
import { identity, isBeingDeleted } from './ownership.ts';

/** As it is latched in the status. */
export type ChosenSource = NonNullable<EtcdClusterStatus['restore']>;
export type Resolution = { readonly chosen: ChosenSource } | { readonly blocked: Blocked };

const blocked = (reason: string, message: string): Resolution => ({ blocked: { reason, message } });

/** The objects that a spec refers to; `undefined`: it does not exist. */
export interface Referenced {
  readonly snapshot: (name: string) => EtcdSnapshot | undefined;
  readonly schedule: (name: string) => EtcdSnapshotSchedule | undefined;
  /** All of this schedule. */
  readonly snapshotsOf: (schedule: EtcdSnapshotSchedule) => readonly EtcdSnapshot[];
}

/** `undefined`: the spec names the location itself. */
export function resolveSource(source: RestoreSource | undefined, find: Referenced): Resolution | undefined {
  const [snapshot, schedule] = [source?.snapshotRef?.name, source?.latest?.scheduleRef?.name];
  if (snapshot !== undefined) return ofSnapshot(snapshot, find.snapshot(snapshot));
  return schedule === undefined ? undefined : ofSchedule(schedule, find);
}

function ofSnapshot(name: string, object: EtcdSnapshot | undefined): Resolution {
  const named = `EtcdSnapshot ${name}`;
  if (!object || isBeingDeleted(object))
    return blocked(
      'SnapshotNotFound',
      `${named} does not exist in this namespace: create it, or name its object in the store`,
    );
  const { phase, artifact, conditions } = object.status ?? {};
  if (phase === 'Failed') {
    const reason = conditions?.find(({ type }) => type === 'Ready')?.message ?? 'it reports no reason';
    return blocked('SnapshotFailed', `${named} has failed: ${reason}. Create another cluster from another snapshot`);
  }
  if (phase !== 'Complete' || !artifact)
    return blocked('SnapshotNotReady', `${named} has not finished: the cluster is restored when it is stored`);
  const { encryption, copyTo } = object.spec;
  const at = (destination: SnapshotLocation) =>
    withKey(destination, objectKeyOf({ ...object.spec, destination }, identity(object)));
  const { checksum } = artifact;
  const source = {
    ...at(object.spec.destination),
    ...present({ copy: copyTo && isCopied(object) ? at(copyTo.destination) : undefined, checksum }),
  };
  return { chosen: { snapshot: name, source, ...present({ encryption }) } };
}

/** And the copy can be restored in its place: its SHA-256 is known. */
const isCopied = ({ spec, status }: EtcdSnapshot): boolean =>
  spec.copyTo !== undefined && status?.copy?.uri !== undefined && status.artifact?.checksum !== undefined;

/** The same location with the key of an object. */
function withKey({ s3, gcs, azure, pvc }: SnapshotLocation, key: string): SnapshotLocation {
  if (s3) return { s3: { ...s3, key } };
  if (gcs) return { gcs: { ...gcs, key } };
  return azure ? { azure: { ...azure, key } } : { pvc: { claimName: pvc?.claimName ?? '', subPath: key } };
}

/** The newest that was stored, or the newest that can be restored all the same. */
function ofSchedule(name: string, find: Referenced): Resolution {
  const schedule = find.schedule(name);
  const named = `EtcdSnapshotSchedule ${name}`;
  if (!schedule || isBeingDeleted(schedule))
    return blocked('SnapshotNotFound', `${named} does not exist in this namespace: create it, or name its store`);
  const useless = uselessBackup(schedule);
  const last = useless ? nextBest(schedule, find) : schedule.status?.lastSuccessful?.name;
  const lack = useless
    ? `${useless.name} cannot be restored (${useless.reason}), and no earlier one was`
    : 'none is stored';
  return last === undefined
    ? blocked('SnapshotNotReady', `${named} has no good snapshot yet: ${lack}`)
    : ofSnapshot(last, find.snapshot(last));
}

/**
 * What a drill could not restore, its neighbours may have as well: then only one that a drill has restored counts. What a scrub
 * found damaged was whole when it was stored, so its copy is, and so are the snapshots before it.
 */
function nextBest(schedule: EtcdSnapshotSchedule, find: Referenced): string | undefined {
  const { status = {} } = schedule;
  const damaged = damagedIn(status).map(({ name }) => name);
  const stored = find
    .snapshotsOf(schedule)
    .filter((each) => each.status?.artifact !== undefined && !isBeingDeleted(each));
  const isWhole = (snapshot: EtcdSnapshot | undefined, name: string): boolean =>
    !damaged.includes(name) || (snapshot !== undefined && isCopied(snapshot));
  const newestFirst = stored.toSorted((a, b) => (identity(a).name < identity(b).name ? 1 : -1));
  const unproven = unrestorableBackup(schedule) ? [] : newestFirst;
  const found = unproven.find((each) => isWhole(each, identity(each).name));
  if (found) return identity(found).name;
  const proven = status.lastRestored?.name;
  return proven !== undefined && isWhole(find.snapshot(proven), proven) ? proven : undefined;
}

/** The cluster with the location in the place of the reference, once it is known. */
export function withChosenSource(cluster: EtcdCluster, chosen = cluster.status?.restore): EtcdCluster {
  const { bootstrap, ...spec } = cluster.spec;
  const { restore } = bootstrap ?? {};
  if (!restore || !chosen?.source) return cluster;
  const encryption = restore.encryption ?? chosen.encryption;
  return {
    ...cluster,
    spec: { ...spec, bootstrap: { restore: { ...restore, source: chosen.source, ...present({ encryption }) } } },
  };
}
