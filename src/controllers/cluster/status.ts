/** The status of an EtcdCluster. Every reconcile computes all of it, whichever rule decided. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { PVC_TERMINATING } from '../../api/etcd-member.ts';
import { clusterSelector } from '../../api/names.ts';
import { type ConditionUpdate, findCondition, updateConditions } from '../../domain/conditions.ts';
import type { Blocked } from '../../domain/disruption.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { isSuspended, SUSPENDED } from '../../domain/suspend.ts';
import { REFUSED_POD_RECHECK_MS, UNREADABLE_RECHECK_MS } from '../../domain/timing.ts';
import { readFailed } from '../../domain/unread.ts';
import { iso } from '../../lib/time.ts';
import type { UpkeepTask } from '../../runtime/plan.ts';
import { backupRequeueMs } from './backup.ts';
import type { ClusterCall } from './calls.ts';
import type { CredentialsDecision } from './credentials/decide.ts';
import { ROTATING } from './credentials/state.ts';
import { AUTH_ENABLED } from './credentials/status.ts';
import { isMarkerOver } from './defragmentation.ts';
import { foreignMembers, foreignMessage, ownEntries } from './foreign-members.ts';
import { furtherConditions, PASSING } from './further-conditions.ts';
import { lossOfAll } from './loss.ts';
import { stepFailures } from './managed-objects.ts';
import { isReached, membersStatus, servingVoters, voterCount } from './members-status.ts';
import {
  brokenMembers,
  clusterIdMismatch,
  conflicts,
  desired,
  entriesOf,
  etcdError,
  evidence,
  isDormant,
  isLosingPvc,
  isNotBeingDeleted,
  isPauseHeld,
  isReadyVoter,
  nameOf,
  type Observed,
  unreadableObjects,
} from './observed.ts';
import { quarantinedVolumes } from './quarantine.ts';
import { REFUSED, refusedStatus, type WantedChange } from './refused-changes.ts';
import { noSpaceMessage, spaceRecheckMs } from './remedy.ts';
import { isExhausted, isRateLimited } from './replacement.ts';
import { hasRecovered } from './replacement-back-off.ts';
import { foundAtTakeOver, keptRollout } from './rollout/edit.ts';
import { keptDeadline, resumedDeadline } from './rollout/failure.ts';
import { rolloutProgress, rolloutRequeueMs } from './rollout/progress.ts';
import { versionRequeueMs } from './rollout/version-conditions.ts';
import { versionUnsettled } from './rollout/version-facts.ts';
import { IN_PLACE_FIELDS, specBlockedBy, unapplied } from './spec-drift.ts';

type Condition = Omit<ConditionUpdate, 'type'>;
const yes = (reason: string, message: string): Condition => ({ status: 'True', reason, message });
const no = (reason: string, message: string): Condition => ({ status: 'False', reason, message });

/** What was decided, as far as the status reports it. */
export interface Decisions {
  readonly message: string;
  readonly latch: Partial<EtcdClusterStatus> | undefined;
  readonly tasks: readonly UpkeepTask<ClusterCall>[];
  readonly credentials: CredentialsDecision;
}

export function statusOf(
  o: Observed,
  { message, latch, tasks, credentials }: Decisions,
  wantedBy: WantedChange,
): EtcdClusterStatus {
  const before = o.cluster.status ?? {};
  if (isBeingDeleted(o.cluster)) return before;
  const latched: EtcdClusterStatus = { ...before, ...resumedDeadline(o, before), ...latch };
  const s = situation(o, latched, [message, ...stepFailures(o)].join('; '), wantedBy);
  const arrived = s.paused === undefined ? s.formed && s.whole && s.ready === s.desired : !running(o);
  const isApplied =
    s.unapplied === '' &&
    !s.rollout &&
    s.unsettled === undefined &&
    s.held === undefined &&
    s.credentials.unsecured === undefined;
  // By its own measure: what waits for something else, such as storage.size, does not keep it open.
  const isRolledOut = s.paused === undefined && arrived && !s.rollout && s.unsettled === undefined;
  const reached = arrived && isApplied && s.terminating === undefined;
  const {
    progressDeadline: deadline,
    repair,
    rollout: _rollout,
    turnAt: _turnAt,
    quarantinedVolumes: _k,
    defragmentation: _d,
    ...observed
  } = latched;
  const waits = s.held !== undefined || s.rollout?.waits === true;
  const defragmentation = latch?.defragmentation ?? (isMarkerOver(o) ? undefined : before.defragmentation);
  const { members: _m, leader: _l, version: _v, clusterVersion: _c, quorum: _q, ...rest } = observed;
  const updates: readonly ConditionUpdate[] = [
    { type: 'Available', ...available(s) },
    { type: 'Progressing', ...progressing(s, reached) },
    { type: 'Degraded', ...degraded(s) },
    ...credentials.conditions,
    ...furtherConditions(o, s.formed, tasks),
    ...(s.suspended ? [{ type: SUSPENDED, ...yes('Suspended', s.message) }] : []),
  ];
  return {
    ...rest,
    ...(!reached && keptDeadline(o, deadline, waits)),
    ...rolloutStatus(o, latched, isRolledOut),
    ...(repair !== undefined && !hasRecovered(o) && { repair }),
    ...(defragmentation && { defragmentation }),
    readyMembers: s.ready,
    brokenMembers: brokenMembers(o),
    ...membersStatus(o, iso(o.now)),
    ...quarantinedVolumes(o),
    selector: clusterSelector(identity(o.cluster).name),
    conditions: conditionsAfter(o, before.conditions, updates),
  };
}

function conditionsAfter(
  o: Observed,
  before: EtcdClusterStatus['conditions'],
  updates: readonly ConditionUpdate[],
): NonNullable<EtcdClusterStatus['conditions']> {
  const passing = [...PASSING, ...(o.cluster.spec.auth?.enabled === true ? [] : [AUTH_ENABLED])];
  const obsolete = passing.filter((type) => updates.every((update) => update.type !== type));
  return [
    ...updateConditions(before, updates, { generation: o.cluster.metadata.generation, now: iso(o.now) }, obsolete),
  ];
}

const recordedRollout = (o: Observed, rollout: EtcdClusterStatus['rollout']): EtcdClusterStatus['rollout'] => {
  if (rollout) return keptRollout(o, rollout);
  return isSuspended(o.cluster) || o.specBlockedBy ? foundAtTakeOver(o) : undefined;
};

const rolloutStatus = (o: Observed, latched: EtcdClusterStatus, isRolledOut: boolean): EtcdClusterStatus => {
  const rollout = recordedRollout(o, latched.rollout);
  const { turnAt } = latched;
  return {
    ...(rollout && { rollout: isRolledOut && rollout.found === undefined ? {} : rollout }),
    ...(turnAt !== undefined && !isRolledOut && { turnAt }),
  };
};

/** With the rollout that this plan records: an edit that it adopts must not be reported as one that waits, or has reached all members. */
const withRollout = (o: Observed, rollout: EtcdClusterStatus['rollout']): Observed => {
  const { rollout: _before, ...status } = o.cluster.status ?? {};
  return { ...o, cluster: { ...o.cluster, status: { ...status, ...(rollout && { rollout }) } } };
};

/** What the conditions Available, Progressing and Degraded are derived from. */
type Situation = ReturnType<typeof situation>;

function situation(o: Observed, latched: EtcdClusterStatus, message: string, wantedBy: WantedChange) {
  const before = findCondition(latched.conditions, 'Available');
  // What running members lack. A paused cluster has none.
  const isRolled = latched.clusterID !== undefined && desired(o) > 0;
  const rollout = isRolled ? rolloutProgress(withRollout(o, latched.rollout), message) : undefined;
  const deadline = rollout?.waits ? undefined : latched.progressDeadline;
  // Available before: a member that is not ready is then a failure, not a slow start.
  const served = before?.status === 'True' || before?.reason === 'QuorumLost';
  const suspended = isSuspended(o.cluster);
  return {
    message,
    suspended,
    formed: latched.clusterID !== undefined,
    ready: o.members.filter(isReadyVoter).length,
    /** The client Service has a ready Pod. */
    reached: o.members.some((m) => isReached(o, m)),
    /** Including voters that have just started or are being deleted. */
    serving: servingVoters(o),
    voters: voterCount(o),
    /** Voters that the operator did not add: it cannot tell whether they serve. */
    foreignVoters: foreignMembers(o).filter((entry) => !entry.isLearner).length,
    foreign: foreignMessage(o),
    desired: desired(o),
    whole: isWhole(o),
    broken: o.members.some((m) => evidence(m) !== undefined),
    /** The operator has given up replacing a member: a user has to find the cause. */
    exhausted: isExhausted(o),
    /** The operator waits, because it has replaced too many members of all clusters. */
    rateLimited: isRateLimited(o),
    /** While it is suspended, members that run go on: they are not paused. */
    paused: desired(o) === 0 && !(suspended && running(o)) ? pausedMessage(o, message) : undefined,
    served,
    /** All members may still become ready. */
    starting: !served && o.members.every((m) => isNotBeingDeleted(m) && evidence(m) === undefined),
    lost: lossOfAll(o),
    taken: conflicts(o).join('; '),
    unapplied: unapplied(o, IN_PLACE_FIELDS).join(', '),
    rollout,
    /** All members run the target version, and etcd has not agreed on it yet. */
    unsettled: versionUnsettled(o),
    inFlight: deadline !== undefined,
    late: deadline !== undefined && o.now >= Date.parse(deadline),
    trouble: etcdError(o) !== undefined ? message : (clusterIdMismatch(o) ?? ''),
    /** A membership change that every voter refuses, although all are healthy. */
    refused: refusedStatus(o, wantedBy),
    full: noSpaceMessage(o),
    terminating: terminatingMessage(o, message),
    held: blockedStatus(o),
    credentials: o.credentials,
    unread: o.credentials.unread ?? readFailed(unreadableObjects(o).concat(o.credentials.unreadCertificates)),
  };
}

const running = (o: Observed): boolean => o.members.some((m) => m.pod.is === 'present');

/** By etcd's member list where there is one: an EtcdMember may not have been added to etcd yet. */
const isWhole = (o: Observed): boolean =>
  o.members.length === desired(o) &&
  o.members.every((m) => isNotBeingDeleted(m) && !isDormant(m)) &&
  voterCount(o) - foreignMembers(o).filter((entry) => !entry.isLearner).length === desired(o) &&
  (entriesOf(o) ? ownEntries(o).length : desired(o)) === desired(o);

function pausedMessage(o: Observed, message: string): string {
  if (running(o)) return message;
  if (o.cluster.status?.clusterID === undefined)
    return 'paused before the bootstrap: there is no data. Set replicas to bootstrap the cluster';
  const volumes = o.members.flatMap((m) => m.object.status?.pvcName ?? []).join(', ');
  return `paused: the data is kept in ${volumes === '' ? 'the volumes of its members' : volumes}. Set replicas to resume the cluster`;
}

/** PVCs that a user has deleted: their data exists as long as the Pods. */
function terminatingMessage(o: Observed, message: string): string | undefined {
  const names = o.members.filter(isLosingPvc).map(nameOf);
  if (names.length === 0) return undefined;
  const held = isPauseHeld(o) ? '. The cluster is paused after that' : '';
  return `the PersistentVolumeClaim of ${names.join(', ')} is being deleted, which cannot be undone: do not delete the Pod, which keeps the data until the operator has replaced the member${held}; ${message}`;
}

/** Why the spec is not applied: not supported yet, not allowed, or without certificates. */
function blockedStatus(o: Observed): Blocked | undefined {
  const { blockedBy } = o.credentials.bootstrap;
  return o.specBlockedBy ?? specBlockedBy(o) ?? (blockedBy?.waits && o.members.length === 0 ? blockedBy : undefined);
}

/** The client Service routes to ready Pods only, so a quorum of etcd alone does not make the cluster available. */
const isQuorate = (s: Situation): boolean => s.reached && s.serving >= quorumOf(s.voters);

function available(s: Situation): Condition {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.paused !== undefined) return no('Paused', s.paused);
  if (!s.formed && s.suspended) return no('Suspended', s.message);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.taken !== '') return no('NameConflict', s.message);
  if (!s.formed && s.credentials.locked) return no(s.credentials.locked.reason, s.credentials.locked.message);
  if (!s.formed) return no(s.late ? 'BootstrapFailed' : 'WaitingForSeed', s.message);
  if (s.ready >= s.desired && s.ready >= s.voters) return yes('QuorumHealthy', 'All members are ready');
  if (isQuorate(s)) return yes('QuorumAvailable', `${s.ready}/${s.desired} members ready`);
  if (s.starting) return no('WaitingForSeed', s.message);
  return no(
    'QuorumLost',
    `quorum lost: ${s.ready} of ${s.voters} voters are ready, and ${quorumOf(s.voters)} are needed: ${s.message}`,
  );
}

function progressing(s: Situation, reached: boolean): Condition {
  if (s.lost) return no(s.lost.reason, s.lost.message);
  if (s.suspended) return no('Suspended', s.message);
  if (s.taken !== '') return no('NameConflict', s.taken);
  if (s.held) return no(s.held.reason, s.held.message);
  if (s.paused !== undefined && reached) return no('Paused', s.paused);
  if (s.credentials.locked && !reached) return no(s.credentials.locked.reason, s.credentials.locked.message);
  const missing =
    s.unapplied === ''
      ? (s.rollout?.message ?? s.message)
      : `not applied yet, because this build does not change the volumes of running members: ${s.unapplied}`;
  if (!reached && s.late)
    return no(
      s.formed ? 'DeadlineExceeded' : 'BootstrapFailed',
      `progressDeadlineSeconds exceeded, still trying: ${missing}`,
    );
  if (s.exhausted) return no('ReplacementsExhausted', s.message);
  if (s.rateLimited) return no('ReplacementRateLimited', s.message);
  if (s.refused?.hopeless) return no(REFUSED, s.refused.message);
  if (s.rollout?.waits === false) return yes(s.rollout.reason, s.rollout.message);
  if (s.formed && s.unapplied !== '') return yes('SpecChanged', missing);
  if (s.formed && s.unsettled !== undefined) return yes('RollingOut', s.unsettled);
  if (!s.formed && s.paused === undefined) return yes('WaitingForSeed', s.message);
  if ((s.broken && !s.whole) || s.terminating !== undefined) return yes('Repairing', s.message);
  if (!s.whole) return yes('Scaling', s.message);
  if (s.credentials.unsecured)
    return (s.credentials.unsecured.waits ? no : yes)(s.credentials.unsecured.reason, s.credentials.unsecured.message);
  if (!reached && s.inFlight) return yes(s.serving > s.ready ? 'Scaling' : 'WaitingForMembers', s.message);
  if (s.unread) return no(s.unread.reason, s.unread.message);
  if (s.credentials.rotating !== undefined) return yes(ROTATING, s.credentials.rotating);
  if (s.rollout) return no(s.rollout.reason, s.rollout.message);
  return no('Reconciled', 'All members match the spec');
}

function degraded(s: Situation): Condition {
  if (s.lost) return yes(s.lost.reason, s.lost.message);
  if (s.taken !== '') return yes('NameConflict', s.taken);
  if (s.paused !== undefined) return no('Paused', s.paused);
  // Also of a seed: it may have restored data that exists nowhere else.
  if (!s.formed && s.terminating !== undefined) return yes(PVC_TERMINATING, s.terminating);
  if (!s.formed && s.suspended) return no('Suspended', s.message);
  if (!s.formed && s.held) return no(s.held.reason, s.held.message);
  if (!s.formed && s.credentials.locked) return yes(s.credentials.locked.reason, s.credentials.locked.message);
  if (!s.formed) return s.late ? yes('BootstrapFailed', s.message) : no('WaitingForSeed', s.message);
  const quorum = isQuorate(s);
  if (!quorum && !s.starting) return yes('QuorumLost', s.message);
  if (s.full !== undefined) return yes('NoSpace', s.full);
  if (s.exhausted) return yes('ReplacementsExhausted', s.message);
  if (s.rateLimited) return yes('ReplacementRateLimited', s.message);
  if (s.broken || (s.serving < s.voters - s.foreignVoters && s.served)) return yes('MembersUnhealthy', s.message);
  if (s.terminating !== undefined) return yes(PVC_TERMINATING, s.terminating);
  if (s.refused) return yes(REFUSED, s.refused.message);
  if (s.credentials.locked) return yes(s.credentials.locked.reason, s.credentials.locked.message);
  if (s.trouble !== '') return yes('MembersUnhealthy', s.trouble);
  if (s.foreign !== undefined) return yes('ForeignMembers', s.foreign);
  if (s.ready < s.desired) return no(quorum ? 'QuorumAvailable' : 'WaitingForSeed', s.message);
  return no('QuorumHealthy', 'All members are ready');
}

/** The shortest delay that was asked for, or less when a deadline has to be reported or an object to be read again. */
export function requeueMs(
  o: Observed,
  latch: Decisions['latch'],
  asked: readonly (number | undefined)[],
): number | undefined {
  const untilDeadline = Date.parse(latch?.progressDeadline ?? o.cluster.status?.progressDeadline ?? '') - o.now;
  const delays = [
    ...asked,
    untilDeadline > 0 ? untilDeadline : undefined, // NaN without a deadline
    backupRequeueMs(o),
    rolloutRequeueMs(o),
    versionRequeueMs(o),
    spaceRecheckMs(o),
    unreadableObjects(o).length > 0 ? UNREADABLE_RECHECK_MS : undefined,
    o.successors?.some(({ refusedBy }) => refusedBy !== undefined) ? REFUSED_POD_RECHECK_MS : undefined,
  ].filter((ms) => ms !== undefined);
  return delays.length === 0 ? undefined : Math.min(...delays);
}
