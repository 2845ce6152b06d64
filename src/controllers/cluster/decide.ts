/** What to do next for one EtcdCluster, in stages: a Service that is refused must not keep a member from being repaired. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { isSuspended, resumed } from '../../domain/suspend.ts';
import { type Answer, allOf, compose, firstOf, waitsForUpkeep } from '../../runtime/compose.ts';
import type { NamedRule, Plan } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import { decideCredentials, stateOf } from './credentials/decide.ts';
import { credentialsFacts } from './credentials-facts.ts';
import { eventsFor } from './events.ts';
import {
  type ClusterDecision,
  type ClusterUpkeep,
  type Gathered,
  hasToken,
  isFormed,
  type MemberView,
  type Observed,
} from './observed.ts';
import { wantedChange } from './refused-changes.ts';
import { restartBlockedBy } from './rollout/candidate.ts';
import { outdatedBecause } from './rollout/reasons.ts';
import { dueFields } from './rollout/state.ts';
import { successorOf } from './rollout/update.ts';
import { cancelDowngrade, snapshotFirst } from './rollout/version-change.ts';
import { bootstrap, completeSeed, discover, rebuildSeed, waitForCredentials, waitForSeed } from './rules/bootstrap.ts';
import { defragment, disarmNoSpace, recordDefragmentation } from './rules/defragment.ts';
import {
  addLearner,
  completePending,
  rebuildJoining,
  refreshJoinList,
  startNext,
  waitForAuth,
  waitForJoining,
} from './rules/growth.ts';
import {
  adoptMembers,
  adoptTarget,
  beingDeleted,
  blockedBySpec,
  labelMembers,
  nameTaken,
  propagateDeletionPolicy,
  suspended,
} from './rules/lifecycle.ts';
import { allMembersLost, noReadableData } from './rules/loss.ts';
import { correctNetworkPolicies } from './rules/network-policies.ts';
import { pause, pausedBeforeBootstrap, resume } from './rules/pause.ts';
import { correctPdb } from './rules/pdb.ts';
import { promote } from './rules/promote.ts';
import { restartRefusing } from './rules/refused-changes.ts';
import { remedyNoSpace } from './rules/remedy.ts';
import { clearAlarm, replaceLost } from './rules/repair.ts';
import {
  relabelMembers,
  restart,
  restartExpired,
  restoreTraffic,
  stopRollout,
  updateBroken,
  updateSpecs,
} from './rules/restart.ts';
import { expireVolumes, handOver, otherClusterId, recordVoters, steady, waitForMembers } from './rules/running.ts';
import { correctServices, relabel } from './rules/services.ts';
import { deleteRemovedMember, removeLeaving, removeOrphanMember, shrink } from './rules/shrink.ts';
import { withApplicableSpec } from './spec-drift.ts';
import { requeueMs, statusOf } from './status.ts';

/** Membership changes that etcd checks by the connections between its members. */
const WANTED_CHANGE = wantedChange([completePending, removeLeaving, removeOrphanMember, addLearner]);

type Rules = readonly NamedRule<Observed, ClusterDecision>[];

/** The first answer ends the reconcile, and nothing is created or corrected. The status is still written. */
export const STOP: Rules = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is created for a cluster that is being deleted
  { name: 'suspended', rule: suspended }, // after deletion, which goes on; before any rule that changes something
  { name: 'blocked', rule: blockedBySpec }, // before anything is created: a spec is never met in part
  { name: 'nameTaken', rule: nameTaken }, // before any object of that name is used
];

/** Every row contributes, and every row of the credentials chain; one that fails backs off, and holds nothing else up. Where two rows write one object, the first goes first. */
export const UPKEEP: readonly NamedRule<Observed, ClusterUpkeep>[] = [
  { name: 'adoptTarget', rule: adoptTarget },
  { name: 'adoptMembers', rule: adoptMembers },
  { name: 'labelMembers', rule: labelMembers },
  { name: 'propagateDeletionPolicy', rule: propagateDeletionPolicy }, // no member is deleted before it has its policy
  { name: 'relabel', rule: relabel },
  { name: 'relabelMembers', rule: relabelMembers },
  { name: 'services', rule: correctServices },
  { name: 'networkPolicies', rule: correctNetworkPolicies },
  { name: 'recordVoters', rule: recordVoters },
  { name: 'pdb', rule: correctPdb }, // follows from the voters
  { name: 'clearAlarm', rule: clearAlarm },
  { name: 'recordDefragmentation', rule: recordDefragmentation }, // also while the membership changes
  { name: 'disarmNoSpace', rule: disarmNoSpace },
  { name: 'remedyNoSpace', rule: remedyNoSpace },
];

/** While no cluster ID is recorded. The first answer wins, and the last row always answers. */
export const BOOTSTRAP: Rules = [
  { name: 'pausedBeforeBootstrap', rule: pausedBeforeBootstrap },
  { name: 'waitForCredentials', rule: waitForCredentials },
  { name: 'bootstrap', rule: bootstrap },
  { name: 'rebuildSeed', rule: rebuildSeed },
  { name: 'completeSeed', rule: completeSeed }, // after the rule that would delete it
  { name: 'discover', rule: discover },
  { name: 'waitForSeed', rule: waitForSeed },
];

/** The first answer wins: at most one membership change at a time. */
export const MEMBERSHIP: Rules = [
  { name: 'allMembersLost', rule: allMembersLost }, // before any rule that could create a member
  { name: 'stopRollout', rule: stopRollout }, // before the member that has failed is restarted again
  { name: 'updateBroken', rule: updateBroken }, // before the rules that report its data as lost, or wait for it
  { name: 'noReadableData', rule: noReadableData }, // before any rule that could replace a member and delete its PVC
  { name: 'clusterIdMismatch', rule: otherClusterId }, // before any rule that uses a response of etcd
  { name: 'pause', rule: pause }, // before any rule that changes the membership
  { name: 'resume', rule: resume },
  { name: 'handOver', rule: handOver }, // after pause, which stops all members; before any change of membership, which may wait for minutes
  { name: 'restartRefusing', rule: restartRefusing(WANTED_CHANGE) }, // before the membership changes that it retries; after deletion and pause, which end it
  { name: 'restartExpired', rule: restartExpired }, // before the membership changes, which wait for members that nothing reaches
  { name: 'completePending', rule: completePending }, // half-created by an earlier operator
  { name: 'removeLeaving', rule: removeLeaving }, // a removal in progress is finished before another change
  { name: 'deleteRemovedMember', rule: deleteRemovedMember },
  { name: 'removeOrphanMember', rule: removeOrphanMember },
  { name: 'replaceLost', rule: replaceLost }, // before growth: it only deletes the lost member, growth adds the new one
  { name: 'shrink', rule: shrink }, // before growth and promotion: removing a learner is cheaper than removing a voter
  { name: 'rebuildJoining', rule: rebuildJoining },
  { name: 'refreshJoinList', rule: refreshJoinList },
  { name: 'startNext', rule: startNext }, // after all rules that could still change its initial cluster
  { name: 'waitForAuth', rule: waitForAuth },
  { name: 'addLearner', rule: addLearner }, // before promotion: after one, etcd refuses to add members for five seconds
  { name: 'promote', rule: promote },
  { name: 'waitForJoining', rule: waitForJoining },
];

/** Only at rest, one disruption at a time. */
export const MAINTENANCE: Rules = [
  { name: 'cancelDowngrade', rule: cancelDowngrade }, // before any member gets another version
  { name: 'snapshotFirst', rule: snapshotFirst },
  { name: 'restart', rule: restart },
  { name: 'updateSpecs', rule: updateSpecs },
  { name: 'expireVolumes', rule: expireVolumes },
  { name: 'defragment', rule: defragment }, // last: it can wait for hours
];

/** Messages only. The last row always answers. */
export const REST: Rules = [
  { name: 'waitForMembers', rule: waitForMembers },
  { name: 'steady', rule: steady },
];

/** The answer of the stages, and whether the membership is at rest. */
export function answerOf(o: Observed): Answer<ClusterDecision> & { readonly atRest: boolean } {
  const membership = isFormed(o) ? firstOf(MEMBERSHIP, o) : firstOf(BOOTSTRAP, o);
  const atRest = isFormed(o) && (membership === undefined || membership.decision.atRest === true);
  const answer = (atRest ? firstOf(MAINTENANCE, o) : undefined) ?? membership ?? firstOf(REST, o);
  if (!answer) throw new Error('no rule decided');
  return { ...answer, atRest };
}

const whenResumed = (gathered: Gathered): Pick<Observed, 'whenResumed'> =>
  isSuspended(gathered.cluster) ? { whenResumed: decide({ ...gathered, cluster: resumed(gathered.cluster) }) } : {};

export function observedOf(gathered: Gathered) {
  const applicable = withApplicableSpec(gathered);
  const facts = credentialsFacts(applicable);
  const o: Observed = { ...applicable, credentials: stateOf(facts), ...whenResumed(gathered) };
  return { facts, o };
}

/** The member whose Pod the plan takes away, at once or after it was taken out of the client Service, and the EtcdMember of its next Pod. */
export function restartedBy(
  gathered: Gathered,
): { readonly member: MemberView; readonly successor: EtcdMember } | undefined {
  const { o } = observedOf(gathered);
  const isRefused = o.refusedSince !== undefined || o.cluster.status?.refusedChange !== undefined;
  const isOutdated = (m: MemberView): boolean => outdatedBecause(o, m).length > 0 || dueFields(o, m).length > 0;
  if (!isRefused && !o.members.some(isOutdated)) return undefined; // in most reconciles
  const member = firstOf(STOP, o) ? undefined : answerOf(o).decision.restarts;
  return member && { member, successor: successorOf(o, member) };
}

export function decide(gathered: Gathered): Plan<EtcdClusterStatus, ClusterCall> {
  const { facts, o } = observedOf(gathered);
  const stop = firstOf(STOP, o);
  const answer = stop ? { ...stop, atRest: false } : answerOf(o);
  const rows = [...UPKEEP, { name: 'restoreTraffic', rule: restoreTraffic(answer.decision.restarts) }];
  const own = allOf(rows, o);
  const latchesToken = answer.decision.latch?.clusterToken !== undefined;
  const credentials = decideCredentials(
    {
      ...facts,
      hasToken: hasToken(o) || (latchesToken && !waitsForUpkeep(answer.decision, own, o.memory)),
      atRest: answer.atRest,
      restartBlockedBy: restartBlockedBy(o),
    },
    o.credentials,
  );
  const upkeep = stop ? [] : [...own, ...credentials.upkeep];
  return compose<EtcdClusterStatus, ClusterCall, ClusterDecision>(
    answer,
    upkeep,
    o.memory,
    (decision, latch, tasks) => {
      const decisions = { message: decision.message, latch, tasks, credentials };
      const status = statusOf({ ...o, credentials: credentials.state }, decisions, WANTED_CHANGE);
      const asked = [decision.requeueAfterMs, ...credentials.requeueAfterMs];
      return { status, events: eventsFor(o, status), requeueAfterMs: requeueMs(o, latch, asked) };
    },
  );
}
