/** What to do next for one EtcdCluster. Order is policy: the first rule that answers wins. */

import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { type NamedRule, type Plan, planOf } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import { enableAuth, enableAuthOnSeed, waitForPassword } from './credentials/rules/auth.ts';
import {
  discardCABundles,
  recordCABundle,
  renewCABundle,
  restartForCABundle,
  restoreTraffic,
} from './credentials/rules/ca-rotation.ts';
import { correctRequests, requestCertificates } from './credentials/rules/cert-manager.ts';
import { waitForCertificates, writeSecrets, writeSecretsFirst } from './credentials/rules/certificates.ts';
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
import { expireVolumes, otherClusterId, recordVoters, steady, waitForMembers } from './rules/running.ts';
import { correctServices, relabel, repairServices } from './rules/services.ts';
import { deleteRemovedMember, removeLeaving, removeOrphanMember, shrink } from './rules/shrink.ts';
import { eventsFor, requeueAfterMs, statusOf } from './status.ts';

/** Membership changes that etcd checks by the connections between its members. */
const WANTED_CHANGE = wantedChange([completePending, removeLeaving, removeOrphanMember, addLearner]);

export const RULES: readonly NamedRule<Observed, ClusterDecision>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is made for a cluster that goes
  { name: 'adoptMembers', rule: adoptMembers }, // before anything is concluded from who the members are
  { name: 'blocked', rule: blockedBySpec }, // before anything is made: never less than what was asked for
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is used
  { name: 'relabel', rule: relabel }, // before the target is replaced: it knows which labels were there
  { name: 'adoptTarget', rule: adoptTarget }, // before anything is made from an outdated target
  { name: 'propagateDeletionPolicy', rule: propagateDeletionPolicy }, // before anything can be deleted by it
  { name: 'allMembersLost', rule: allMembersLost }, // before any rule that could make a member
  { name: 'noReadableData', rule: noReadableData }, // before any rule that could replace a member, and delete its volume
  { name: 'pausedBeforeBootstrap', rule: pausedBeforeBootstrap },
  { name: 'requestCertificates', rule: requestCertificates }, // takes longest, and nothing begins without
  { name: 'writeSecretsFirst', rule: writeSecretsFirst }, // before anything that could be started with them
  { name: 'waitForCertificates', rule: waitForCertificates },
  { name: 'waitForPassword', rule: waitForPassword },
  { name: 'bootstrap', rule: bootstrap },
  { name: 'renewCABundle', rule: renewCABundle },
  { name: 'rebuildSeed', rule: rebuildSeed },
  { name: 'discover', rule: discover },
  { name: 'repairServices', rule: repairServices }, // also while waiting: members need their names in DNS
  { name: 'waitForSeed', rule: waitForSeed }, // last of those without an id
  { name: 'clusterIdMismatch', rule: otherClusterId }, // before anything that etcd says is believed
  { name: 'recordVoters', rule: recordVoters },
  { name: 'repairPdb', rule: repairPdb }, // follows from who votes
  { name: 'pause', rule: pause }, // before any rule that changes the membership
  { name: 'resume', rule: resume },
  { name: 'clearAlarm', rule: clearAlarm }, // before all that needs etcd to write
  { name: 'enableAuthOnSeed', rule: enableAuthOnSeed }, // before there are more who let everybody in
  { name: 'restartRefusing', rule: restartRefusing(WANTED_CHANGE) }, // before every change that it is about; after deletion and pause, which end it
  { name: 'completePending', rule: completePending }, // half-done by an earlier operator
  { name: 'restoreTraffic', rule: restoreTraffic }, // clients must not wait for anything else
  { name: 'removeLeaving', rule: removeLeaving }, // what was begun is finished before anything else is
  { name: 'deleteRemovedMember', rule: deleteRemovedMember },
  { name: 'removeOrphanMember', rule: removeOrphanMember },
  { name: 'replaceLost', rule: replaceLost }, // before growth: it only makes room
  { name: 'shrink', rule: shrink }, // before growth and promotion: a learner is cheaper to take out than a voter
  { name: 'rebuildJoining', rule: rebuildJoining },
  { name: 'refreshJoinList', rule: refreshJoinList },
  { name: 'startNext', rule: startNext }, // after all that could still change the list that it starts with
  { name: 'addLearner', rule: addLearner }, // before promotion: after one, etcd takes nobody for a while
  { name: 'promote', rule: promote },
  { name: 'waitForJoining', rule: waitForJoining },
  { name: 'adoptRefused', rule: adoptRefused },
  { name: 'correctServices', rule: correctServices }, // these were refused a moment ago: after all that is urgent
  { name: 'correctPdb', rule: correctPdb },
  { name: 'writeSecrets', rule: writeSecrets }, // refused a moment ago: after all that is urgent
  { name: 'correctRequests', rule: correctRequests }, // cert-manager may refuse or be away: after all that is urgent
  { name: 'recordCABundle', rule: recordCABundle }, // when nobody joins or leaves any more
  { name: 'restartForCABundle', rule: restartForCABundle },
  { name: 'discardCABundles', rule: discardCABundles },
  { name: 'enableAuth', rule: enableAuth }, // changes no member, and must not be in the way of what does
  { name: 'expireVolumes', rule: expireVolumes },
  { name: 'waitForMembers', rule: waitForMembers },
  { name: 'steady', rule: steady },
];

export const decide = (o: Observed): Plan<EtcdClusterStatus, ClusterCall> =>
  planOf(RULES, o, (answer) => {
    const status = statusOf(o, answer, WANTED_CHANGE);
    return { status, events: eventsFor(o, status), requeueAfterMs: requeueAfterMs(o, answer) };
  });
