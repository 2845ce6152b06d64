/** How far an edit or a requested restart has reached the members, from what the operator reports. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { findCondition } from '../../domain/conditions.ts';
import { isPodReady } from '../../domain/pod.ts';
import { SUSPENDED } from '../../domain/suspend.ts';
import { minorName, minorOf } from '../../domain/version-path.ts';
import type { Pod } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { time } from './backups.ts';
import type { Progress } from './progress.ts';

export interface RolloutRow {
  /** Milliseconds since 1970. Absent: members differ from the spec, and no rollout is in progress. */
  readonly since?: number;
  /** Members with the fields of the spec that they do not have yet. */
  readonly outdated: readonly { readonly name: string; readonly fields: readonly string[] }[];
  readonly failed?: { readonly member: string; readonly message: string };
}

/** `undefined` when all members have the spec. */
export function rolloutOf({ status }: EtcdCluster): RolloutRow | undefined {
  const { since, failed } = status?.rollout ?? {};
  const outdated = (status?.members ?? []).flatMap(({ name, outdated: fields = [] }) =>
    fields.length === 0 ? [] : [{ name, fields }],
  );
  if (since === undefined && outdated.length === 0 && !failed) return undefined;
  return {
    outdated,
    ...present({ since: time(since) }),
    ...(failed && { failed: { member: failed.member, message: failed.message } }),
  };
}

/** The generation of the spec that the operator reported about is not the last one. */
export function isBehind({ metadata, status }: EtcdCluster): boolean {
  const observed = findCondition(status?.conditions, 'Available')?.observedGeneration;
  return observed !== undefined && metadata.generation !== undefined && observed < metadata.generation;
}

/** Why no rollout would start; `undefined` when the operator would act on a request. */
export function rolloutRefusal({ metadata: { name = '' }, spec, status }: EtcdCluster): string | undefined {
  if (spec.suspend) return `the operator is suspended for ${name}: kubectl etcd unsuspend ${name}`;
  if (status?.clusterID === undefined) return `${name} was never bootstrapped: see kubectl etcd status ${name}`;
  if ((status.observed?.replicas ?? spec.replicas) === 0) return `${name} is paused, and has no Pods`;
  return status.members === undefined
    ? `the operator that has last reconciled ${name} does not roll changes out: its status lists no members. Check that this operator runs`
    : undefined;
}

/** Of `Progressing`: it goes on only after a user has acted. */
const STOPPED = [
  'RolloutFailed',
  SUSPENDED,
  'ImageNotAllowed',
  'OperatorImageNotConfigured',
  'ReferenceNotPermitted',
  'Paused',
];
/** Of `VersionChangeReady`: likewise. */
const VERSION_STOPPED = [
  'MinorSkipped',
  'DowngradeImpossible',
  'PatchTooOld',
  'ForeignMembers',
  'AlarmRaised',
  'QuotaNearlyUsed',
  'UnknownFlags',
  'DataDiffers',
  'SnapshotFailed',
];
/** What the operator does itself before it changes the version. */
const OWN_WORK = ['ComparingData', 'TakingSnapshot'];

/** A check of the operator that a user has to do something about, or that has to pass by itself. */
export const isObstacle = ({ reason }: { readonly reason: string }): boolean => !OWN_WORK.includes(reason);

/** All members run this version, and etcd has agreed on its minor. */
export function versionProgress(cluster: EtcdCluster, version: string): Progress {
  const { metadata, spec, status } = cluster;
  if (metadata.deletionTimestamp !== undefined) return { line: `${metadata.name} is being deleted`, ended: 'bad' };
  if (spec.version !== version) return { line: `spec.version was changed to ${spec.version} meanwhile`, ended: 'bad' };
  if (isBehind(cluster)) return { line: `${version}: waiting until the operator has observed the edit` };
  const { members = [], conditions, clusterVersion } = status ?? {};
  const [available, progressing, ready] = ['Available', 'Progressing', 'VersionChangeReady'].map((type) =>
    findCondition(conditions, type),
  );
  const stopped = STOPPED.includes(progressing?.reason ?? '');
  if (stopped && progressing?.status === 'False')
    return { line: `${version}: ${progressing.reason}: ${progressing.message}`, ended: 'bad' };
  if (ready?.status === 'False') {
    const line = `${version}: ${ready.reason}: ${ready.message}`;
    return VERSION_STOPPED.includes(ready.reason) ? { line, ended: 'bad' } : { line };
  }
  const done = members.filter((member) => member.version === version).length;
  const agreed = clusterVersion === undefined || minorName(minorOf(clusterVersion)) === minorName(minorOf(version));
  const isRolling = progressing?.reason === 'RollingOut' || status?.rollout?.since !== undefined;
  if (done === members.length && agreed && !isRolling && available?.status === 'True')
    return { line: `${version}: all ${done} members run it`, ended: 'good' };
  if (progressing?.reason === 'RollingOut') return { line: `${version}: ${progressing.message}` };
  return { line: `${version}: ${done} of ${members.length} members run it; ${progressing?.message ?? ''}` };
}

/**
 * `value`: of the annotation. `before`: the uids of the Pods at the time of the request. A condition may be of the time before it: the
 * annotation is no edit of the spec, and so changes no generation.
 */
export function restartProgress(
  { metadata, spec, status }: EtcdCluster,
  members: readonly { readonly pod?: Pod }[],
  { value, before }: { readonly value: string; readonly before: ReadonlySet<string> },
): Progress {
  if (metadata.deletionTimestamp !== undefined) return { line: `${metadata.name} is being deleted`, ended: 'bad' };
  if (spec.suspend) return { line: `the operator was suspended for ${metadata.name} meanwhile`, ended: 'bad' };
  const { failed } = status?.rollout ?? {};
  if (failed?.restartedAt === value) return { line: `${failed.member}: ${failed.message}`, ended: 'bad' };
  const progressing = findCondition(status?.conditions, 'Progressing');
  const done = members.filter(({ pod }) => pod && !before.has(pod.metadata.uid ?? '') && isPodReady(pod)).length;
  const isRolling = progressing?.reason === 'RollingOut';
  const line = `${done} of ${members.length} members have restarted`;
  if (done === members.length && done > 0 && !isRolling) return { line, ended: 'good' };
  return { line: isRolling ? progressing.message : line };
}
