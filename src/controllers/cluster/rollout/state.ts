/** The state of the rollout: which template members get, whether a restart was requested, and why edits are not rolled out now. */
import type { Target } from '../../../api/etcd-cluster-status.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import type { Template } from '../../../api/template.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { isBeforeRestart } from '../../../domain/pod-template.ts';
import { isSuspended, SUSPENDED } from '../../../domain/suspend.ts';
import { present } from '../../../lib/present.ts';
import { type ClusterFacts, hasJoined, isNotBeingDeleted, type MemberView, nameOf, wanted } from '../observed.ts';
import { failedRollout, restartRequest } from './failed.ts';
import { differingFields, fitted, lackedFields } from './template.ts';
import { turnBlockedBy } from './turn.ts';
import { windowBlockedBy } from './windows.ts';

export const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');

/**
 * The template that all members had before, if a member may go back to it. etcd does not start with an earlier minor than the
 * cluster version, which is not above the minor of any member that runs.
 */
export function previousTemplate(o: ClusterFacts): Template | undefined {
  const { previous } = o.cluster.status?.rollout ?? {};
  if (!previous) return undefined;
  const minor = minorOf(previous.version);
  const mayReturn =
    minor === minorOf(wanted(o).version) || o.members.some(({ self }) => self && minorOf(self.version) === minor);
  return mayReturn ? previous : undefined;
}

/** What new members are created with: after a rollout that failed, what all members had before. */
export function templateOfNew(o: ClusterFacts): Target {
  const previous = failedRollout(o) && previousTemplate(o);
  if (!previous) return wanted(o);
  // Patched in place: with the previous one, a joining member would be patched, and recreated because it differs, again and again.
  const { additionalMetadata: _, ...template } = previous;
  const { replicas, additionalMetadata } = wanted(o);
  return { ...template, replicas, ...present({ additionalMetadata }) };
}

/** What a running member should have. After a rollout that failed, its member gets back what it had, and no other member is changed. */
export function templateOf(o: ClusterFacts, m: MemberView): Template {
  const failed = failedRollout(o);
  if (!failed) return fitted(wanted(o), m.object.spec);
  const previous = failed.member === nameOf(m) ? previousTemplate(o) : undefined;
  return previous ? fitted(previous, m.object.spec) : m.object.spec;
}

/** A user has requested a restart of all members, and this one has not been restarted since. */
export function isRestartRequested(o: ClusterFacts, { object, pod }: MemberView): boolean {
  const value = restartRequest(o);
  if (value === undefined) return false;
  if (object.metadata.annotations?.[RESTARTED_AT_ANNOTATION] !== value) return true;
  return pod.is === 'present' && pod.terminating !== true && !!pod.stamp && isBeforeRestart(pod.stamp, object);
}

/** What members lack was found when this operator took the cluster over: no edit was made since then. */
export const isFoundOnly = ({ cluster: { status } }: ClusterFacts): boolean =>
  status?.rollout === undefined || status.rollout.found !== undefined;

export const isOnDelete = ({ cluster }: ClusterFacts): boolean => cluster.spec.updateStrategy?.type === 'OnDelete';

export const UPDATE_PENDING = 'UpdatePending';
export const ROLLOUT_FAILED = 'RolloutFailed';

/**
 * Why edits are not rolled out to running members now. What differed before this operator took over, an earlier operator had left
 * so: taking over restarts no member.
 */
export function rolloutHeldBy(o: ClusterFacts): Blocked | undefined {
  const remedy = `the next edit applies it, as does the annotation ${RESTARTED_AT_ANNOTATION} of the EtcdCluster with any new value`;
  if (isFoundOnly(o)) return { reason: UPDATE_PENDING, message: `found when this operator took over: ${remedy}` };
  const failed = failedRollout(o);
  if (failed) return { reason: ROLLOUT_FAILED, message: failed.message };
  if (isOnDelete(o))
    return {
      reason: UPDATE_PENDING,
      message: 'updateStrategy.type is OnDelete: delete the Pods of these members, one after the other',
    };
  return windowBlockedBy(o) ?? turnBlockedBy(o);
}

/** It is restarted with the fields that it lacks, and not deleted, paused or still to join: then it is recreated as a whole. */
const isRolled = (m: MemberView): boolean => hasJoined(m) && isNotBeingDeleted(m) && m.object.spec.dormant !== true;

/** The fields that this member gets with its next restart, whenever that is. */
export function dueFields(o: ClusterFacts, m: MemberView): readonly (keyof Template)[] {
  const isHeld = isFoundOnly(o) && !isRestartRequested(o, m);
  return isHeld || !isRolled(m) ? [] : lackedFields(m, templateOf(o, m));
}

/** The fields for which this member is restarted now. */
export const rolledFields = (o: ClusterFacts, m: MemberView): readonly (keyof Template)[] =>
  (rolloutHeldBy(o) && !isRestartRequested(o, m)) || turnBlockedBy(o) ? [] : dueFields(o, m);

/** Its next restart changes the version of its etcd. */
export const changesVersion = (o: ClusterFacts, m: MemberView): boolean =>
  m.object.spec.version !== templateOf(o, m).version;

/**
 * Why no member would get another version now, although nothing may be wrong with the cluster: until it can start, no data is
 * hashed, which stops writes, and no snapshot is taken, which would be old by then.
 */
export function versionStartBlockedBy(o: ClusterFacts): Blocked | undefined {
  if (isSuspended(o.cluster)) return { reason: SUSPENDED, message: 'the cluster is suspended' };
  const due = isOnDelete(o) ? dueFields : rolledFields;
  return o.members.some((m) => changesVersion(o, m) && due(o, m).length > 0) ? undefined : rolloutHeldBy(o);
}

/** A rollout is in progress, and this member has another template than all members had before it. */
export function isChanged(o: ClusterFacts, m: MemberView): boolean {
  const { since, previous } = o.cluster.status?.rollout ?? {};
  if (since === undefined) return false;
  return previous ? differingFields(m, previous).length > 0 : lackedFields(m, wanted(o)).length === 0;
}
