/** The snapshot that a cluster is restored from, where its spec names an EtcdSnapshot or an EtcdSnapshotSchedule instead of an object in a store. */
import type { RestoreSource } from '../api/bootstrap.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import type { EtcdSnapshot } from '../api/etcd-snapshot.ts';
import { type EtcdSnapshotSchedule, lastProven, uselessBackup } from '../api/etcd-snapshot-schedule.ts';
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
  const isCopied = copyTo && object.status?.copy?.uri !== undefined && checksum !== undefined;
  const source = {
    ...at(object.spec.destination),
    ...present({ copy: isCopied ? at(copyTo.destination) : undefined, checksum }),
  };
  return { chosen: { snapshot: name, source, ...present({ encryption }) } };
}

/** The same location with the key of an object. */
function withKey({ s3, gcs, azure, pvc }: SnapshotLocation, key: string): SnapshotLocation {
  if (s3) return { s3: { ...s3, key } };
  if (gcs) return { gcs: { ...gcs, key } };
  return azure ? { azure: { ...azure, key } } : { pvc: { claimName: pvc?.claimName ?? '', subPath: key } };
}

/** The newest that was stored; if a drill could not restore it, the newest that a drill has restored. */
function ofSchedule(name: string, find: Referenced): Resolution {
  const schedule = find.schedule(name);
  const named = `EtcdSnapshotSchedule ${name}`;
  if (!schedule || isBeingDeleted(schedule))
    return blocked('SnapshotNotFound', `${named} does not exist in this namespace: create it, or name its store`);
  const { lastSuccessful } = schedule.status ?? {};
  const useless = uselessBackup(schedule);
  const last = useless ? lastProven(schedule) : lastSuccessful;
  const lack = useless
    ? `${useless.name} cannot be restored (${useless.reason}), and no earlier one was`
    : 'none is stored';
  return last
    ? ofSnapshot(last.name, find.snapshot(last.name))
    : blocked('SnapshotNotReady', `${named} has no good snapshot yet: ${lack}`);
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
