/** A member that does not become ready with an edit: the rollout stops, and the member gets back what it had. */
import { DEFAULT_PROGRESS_DEADLINE_SECONDS } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../../api/etcd-member.ts';
import type { Template } from '../../../api/template.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { unstampedFields } from '../../../domain/pod-template.ts';
import { isSuspended, SUSPENDED } from '../../../domain/suspend.ts';
import { STABLE_AFTER_MS } from '../../../domain/timing.ts';
import { iso } from '../../../lib/time.ts';
import { isBeingDefragmented } from '../defragmentation.ts';
import {
  createdAt,
  desired,
  evidence,
  isNotBeingDeleted,
  isReadyVoter,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
  wanted,
} from '../observed.ts';
import { isHealthy } from '../quorum.ts';
import { progressDeadline } from '../spec-drift.ts';
import { editedRollout } from './edit.ts';
import { failedRollout, restartRequest } from './failed.ts';
import { lacksPeers } from './peers-away.ts';
import { isChanged, isOnDelete, previousTemplate } from './state.ts';
import { describedFields, differingFields, lackedFields } from './template.ts';

/** Another etcd may not start with the data of the previous one; other edits do not make data unreadable. */
const ANOTHER_ETCD: readonly (keyof Template)[] = ['version', 'image', 'extraArgs'];

/** Its EtcdMember has another template, and its Pod still has this one. */
const hasPodOf = ({ object, pod }: MemberView, template: Template): boolean =>
  pod.is === 'present' &&
  pod.stamp !== undefined &&
  unstampedFields(pod.stamp, { ...object, spec: { ...object.spec, ...template } }).length === 0;

const mayMisreadData = (o: Observed, m: MemberView): boolean => {
  const { previous } = o.cluster.status?.rollout ?? {};
  return !previous || differingFields(m, previous).some((field) => ANOTHER_ETCD.includes(field));
};

/**
 * The failure evidence of a member that was just changed proves nothing about its data: it would lose its volume to an edit that a
 * user can take back. An unknown flag looks like a crash loop.
 */
export function isEvidenceSuspended(o: Observed, m: MemberView): boolean {
  const { previous } = o.cluster.status?.rollout ?? {};
  const failed = failedRollout(o);
  if (!isChanged(o, m) || (failed && failed.member !== nameOf(m))) return false; // it has worked with the edit
  if (previous && lackedFields(m, wanted(o)).length > 0 && hasPodOf(m, previous)) return false;
  const reason = evidence(m)?.reason;
  return reason === EVIDENCE.crashLooping || (reason === EVIDENCE.dataInvalid && mayMisreadData(o, m));
}

export const isServing = (o: Observed, m: MemberView): boolean => isReadyVoter(m) && isHealthy(o, m);

/**
 * The node of its Pod is down: the member comes back with it, whatever it has, and its Pod cannot be replaced before. A Pod that has
 * no node yet waits for none: its PVC may still name the one that it was provisioned on.
 */
export const isNodeDown = ({ pod, nodeGone, nodeReady }: MemberView): boolean =>
  pod.is === 'present' &&
  pod.node !== undefined &&
  (nodeGone === true || (nodeReady !== undefined && !nodeReady.startsWith('True')));

/** Its running Pod has the edit that is being rolled out. */
export const hasEdit = (o: Observed, m: MemberView): boolean =>
  isChanged(o, m) && lackedFields(m, wanted(o)).length === 0;

/** Its etcd responds with the edit, or a kubelet has found it ready: that it is no healthy voter has another cause, such as peers that are away. */
const runsWithEdit = ({ pod, self }: MemberView): boolean =>
  self !== undefined || (pod.is === 'present' && pod.terminating !== true && pod.ready);

/** Members that have the edit and do not serve. */
function triedMembers(o: Observed): readonly MemberView[] {
  if (desired(o) === 0 || failedRollout(o)) return [];
  return o.members.filter(
    (m) =>
      isNotBeingDeleted(m) &&
      hasEdit(o, m) &&
      !isServing(o, m) &&
      !runsWithEdit(m) &&
      !lacksPeers(o, m) &&
      !isBeingDefragmented(o, m) &&
      !isNodeDown(m) &&
      (evidence(m) === undefined || isEvidenceSuspended(o, m)),
  );
}

/**
 * Of these, members whose deadline counts whatever the others wait for: a maintenance window that closes meanwhile would otherwise
 * leave a broken member as it is until the next one. With OnDelete, the user has restarted it.
 */
export const membersOnTrial = (o: Observed): readonly MemberView[] => (isOnDelete(o) ? [] : triedMembers(o));

/** The time that a change spent suspended does not count: a resumed one has the whole progressDeadlineSeconds again. */
export const resumedDeadline = (o: Observed, before: EtcdClusterStatus): Partial<EtcdClusterStatus> =>
  before.progressDeadline !== undefined && !isSuspended(o.cluster) && findCondition(before.conditions, SUSPENDED)
    ? { progressDeadline: progressDeadline(o) }
    : {};

/**
 * What waits for a user, or for a time, has no deadline; a member that has the edit and does not serve always has one. `waits`:
 * all other members wait.
 */
export function keptDeadline(o: Observed, deadline: string | undefined, waits: boolean): Partial<EtcdClusterStatus> {
  const kept = membersOnTrial(o).length > 0 ? (deadline ?? progressDeadline(o)) : waits ? undefined : deadline;
  return kept === undefined ? {} : { progressDeadline: kept };
}

/** The member that has the edit and is not ready when the deadline of its restart has passed. */
function failedMember(o: Observed): MemberView | undefined {
  const { progressDeadline: deadline, observed } = o.cluster.status ?? {};
  // The time that a change spent suspended does not count: no Pod was created meanwhile.
  if (findCondition(o.cluster.status?.conditions, SUSPENDED)) return undefined;
  if (deadline === undefined || o.now < Date.parse(deadline)) return undefined;
  if (editedRollout(o)) return undefined; // the member gets another edit at once
  return triedMembers(o).find(
    (m) =>
      observed !== undefined &&
      differingFields(m, observed).length === 0 &&
      unreadyForMs(o, m) >= deadlineMs(o) &&
      isObserved(m),
  );
}

/** An operator that has just started, after the deadline, may find it in its first seconds with another Pod, or as its peers come back. */
const isObserved = ({ pod, unreadyForMs: observedMs = Infinity }: MemberView): boolean =>
  observedMs >= STABLE_AFTER_MS || (pod.is === 'present' && pod.restarted === true);

const deadlineMs = ({ cluster }: Observed): number =>
  (cluster.spec.progressDeadlineSeconds ?? DEFAULT_PROGRESS_DEADLINE_SECONDS) * 1_000;

/**
 * A member that was ready with the edit and is restarted for another reason, or has just joined, has not failed; nor has one for
 * which only the wall clock has jumped ahead. One that crashes again and again is ready in between.
 */
function unreadyForMs(o: Observed, m: MemberView): number {
  const ready = readyCondition(m.object);
  if (ready?.status === 'True') return 0;
  if (m.pod.is === 'present' && m.pod.restarted === true && m.pod.createdAt !== undefined)
    return o.now - m.pod.createdAt;
  return o.now - (o.clockAheadMs ?? 0) - (ready ? Date.parse(ready.lastTransitionTime) : createdAt(m));
}

export interface Failure {
  readonly message: string;
  readonly rollout: NonNullable<EtcdClusterStatus['rollout']>;
}

/** What is recorded when a rollout fails. */
export function rolloutFailure(o: Observed): Failure | undefined {
  const m = failedMember(o);
  if (!m) return undefined;
  const { rollout = {} } = o.cluster.status ?? {};
  const seconds = deadlineMs(o) / 1_000;
  const fields = rollout.previous ? describedFields(differingFields(m, rollout.previous), m.object.spec) : 'the edit';
  const since = readyCondition(m.object)?.message ?? 'no status yet';
  const back = previousTemplate(o)
    ? 'It gets back what it had'
    : 'It keeps it, because what it had before is not known or its etcd would not start with the earlier version';
  const message = `${nameOf(m)} was not ready ${seconds} s after it got ${fields} (${since}). ${back}, and no other member is changed. Correct or revert the edit`;
  const restartedAt = restartRequest(o);
  const failed = { member: nameOf(m), at: iso(o.now), message, ...(restartedAt !== undefined && { restartedAt }) };
  return { message, rollout: { ...rollout, failed } };
}
