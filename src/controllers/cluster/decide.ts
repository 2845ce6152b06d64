/** What to do next for one EtcdCluster. The order is policy: the first rule that applies decides. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { type NamedRule, type Plan, planOf } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import { enableAuth, enableAuthOnSeed, waitForPassword } from './credentials/rules/auth.ts';
import { discardCABundles, recordCABundle, renewCABundle } from './credentials/rules/ca-rotation.ts';
import { correctRequests, requestCertificates } from './credentials/rules/cert-manager.ts';
import { waitForCertificates, writeSecrets, writeSecretsFirst } from './credentials/rules/certificates.ts';
import { eventsFor } from './events.ts';
import type { ClusterDecision, Observed } from './observed.ts';
import { wantedChange } from './refused-changes.ts';
import { bootstrap, discover, rebuildSeed, waitForSeed } from './rules/bootstrap.ts';
import {
  addLearner,
  completePending,
  rebuildJoining,
  refreshJoinList,
  startNext,
  waitForJoining,
} from './rules/growth.ts';
import {
  adoptMembers,
  adoptRefused,
  adoptTarget,
  beingDeleted,
  blockedBySpec,
  nameTaken,
  propagateDeletionPolicy,
} from './rules/lifecycle.ts';
import { allMembersLost, noReadableData } from './rules/loss.ts';
import { pause, pausedBeforeBootstrap, resume } from './rules/pause.ts';
import { correctPdb, repairPdb } from './rules/pdb.ts';
import { promote } from './rules/promote.ts';
import { restartRefusing } from './rules/refused-changes.ts';
import { clearAlarm, replaceLost } from './rules/repair.ts';
import { restart, restoreTraffic } from './rules/restart.ts';
import { expireVolumes, otherClusterId, recordVoters, steady, waitForMembers } from './rules/running.ts';
import { correctServices, relabel, repairServices } from './rules/services.ts';
import { deleteRemovedMember, removeLeaving, removeOrphanMember, shrink } from './rules/shrink.ts';
import { requeueAfterMs, statusOf } from './status.ts';

/** Membership changes that etcd checks by the connections between its members. */
const WANTED_CHANGE = wantedChange([completePending, removeLeaving, removeOrphanMember, addLearner]);

export const RULES: readonly NamedRule<Observed, ClusterDecision>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is created for a cluster that is being deleted
  { name: 'adoptMembers', rule: adoptMembers }, // before any rule that counts members
  { name: 'blocked', rule: blockedBySpec }, // before anything is created: a spec is never met in part
  { name: 'nameTaken', rule: nameTaken }, // before any object of that name is used
  { name: 'relabel', rule: relabel }, // before the target is replaced: it has the previous labels
  { name: 'adoptTarget', rule: adoptTarget }, // before anything is built from an outdated target
  { name: 'propagateDeletionPolicy', rule: propagateDeletionPolicy }, // before any rule that deletes a member
  { name: 'allMembersLost', rule: allMembersLost }, // before any rule that could create a member
  { name: 'noReadableData', rule: noReadableData }, // before any rule that could replace a member and delete its PVC
  { name: 'pausedBeforeBootstrap', rule: pausedBeforeBootstrap },
  { name: 'requestCertificates', rule: requestCertificates }, // takes longest, and the bootstrap needs them
  { name: 'writeSecretsFirst', rule: writeSecretsFirst }, // before any Pod that mounts them
  { name: 'waitForCertificates', rule: waitForCertificates },
  { name: 'waitForPassword', rule: waitForPassword },
  { name: 'bootstrap', rule: bootstrap },
  { name: 'renewCABundle', rule: renewCABundle },
  { name: 'rebuildSeed', rule: rebuildSeed },
  { name: 'discover', rule: discover },
  { name: 'repairServices', rule: repairServices }, // also before the bootstrap is complete: members need their DNS names
  { name: 'waitForSeed', rule: waitForSeed }, // last of the rules before the cluster ID is recorded
  { name: 'clusterIdMismatch', rule: otherClusterId }, // before any rule that uses a response of etcd
  { name: 'recordVoters', rule: recordVoters },
  { name: 'repairPdb', rule: repairPdb }, // follows from the voters
  { name: 'pause', rule: pause }, // before any rule that changes the membership
  { name: 'resume', rule: resume },
  { name: 'clearAlarm', rule: clearAlarm }, // before all rules that need etcd to accept writes
  { name: 'enableAuthOnSeed', rule: enableAuthOnSeed }, // before other members serve clients without auth
  { name: 'restartRefusing', rule: restartRefusing(WANTED_CHANGE) }, // before the membership changes that it retries; after deletion and pause, which end it
  { name: 'completePending', rule: completePending }, // half-created by an earlier operator
  { name: 'restoreTraffic', rule: restoreTraffic(WANTED_CHANGE) }, // before anything slower: the Pod serves no clients until then
  { name: 'removeLeaving', rule: removeLeaving }, // a removal in progress is finished before another change
  { name: 'deleteRemovedMember', rule: deleteRemovedMember },
  { name: 'removeOrphanMember', rule: removeOrphanMember },
  { name: 'replaceLost', rule: replaceLost }, // before growth: it only deletes the lost member, growth adds the new one
  { name: 'shrink', rule: shrink }, // before growth and promotion: removing a learner is cheaper than removing a voter
  { name: 'rebuildJoining', rule: rebuildJoining },
  { name: 'refreshJoinList', rule: refreshJoinList },
  { name: 'startNext', rule: startNext }, // after all rules that could still change its initial cluster
  { name: 'addLearner', rule: addLearner }, // before promotion: after one, etcd refuses to add members for five seconds
  { name: 'promote', rule: promote },
  { name: 'waitForJoining', rule: waitForJoining },
  { name: 'adoptRefused', rule: adoptRefused },
  { name: 'correctServices', rule: correctServices }, // refused in the last reconcile: after the urgent rules
  { name: 'correctPdb', rule: correctPdb },
  { name: 'writeSecrets', rule: writeSecrets }, // refused in the last reconcile: after the urgent rules
  { name: 'correctRequests', rule: correctRequests }, // the cert-manager webhook may refuse or be unreachable: after the urgent rules
  { name: 'recordCABundle', rule: recordCABundle }, // when no member joins or leaves
  { name: 'restart', rule: restart },
  { name: 'discardCABundles', rule: discardCABundles },
  { name: 'enableAuth', rule: enableAuth }, // changes no member, and must not delay rules that do
  { name: 'expireVolumes', rule: expireVolumes },
  { name: 'waitForMembers', rule: waitForMembers },
  { name: 'steady', rule: steady },
];

export const decide = (o: Observed): Plan<EtcdClusterStatus, ClusterCall> =>
  planOf(RULES, o, (decision) => {
    const status = statusOf(o, decision, WANTED_CHANGE);
    return { status, events: eventsFor(o, status), requeueAfterMs: requeueAfterMs(o, decision) };
  });
