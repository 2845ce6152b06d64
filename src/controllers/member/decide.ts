/** Decides the next steps for one EtcdMember. The order is policy: the first rule that returns a decision wins. */
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import { type Decision, type NamedRule, type Plan, planOf } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { clusterBeingDeleted, release } from './rules/leaving.ts';
import {
  addFinalizer,
  cannotRun,
  makeVolumeAndPod,
  markPod,
  nameTaken,
  ownVolume,
  pause,
  remakeJoiningPod,
  removeEndedPod,
  steady,
  stopOnDataLoss,
  waitForJoinList,
} from './rules/running.ts';
import { eventsFor, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, Decision<EtcdMemberStatus>>[] = [
  { name: 'release', rule: release }, // first: nothing is created for a member that is being deleted, unless its vote still counts
  { name: 'clusterBeingDeleted', rule: clusterBeingDeleted },
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is used
  { name: 'stopOnDataLoss', rule: stopOnDataLoss }, // before anything that could create an empty data directory
  { name: 'addFinalizer', rule: addFinalizer }, // before there is anything to clean up
  { name: 'ownVolume', rule: ownVolume }, // before a user can delete the owner of the PVC
  { name: 'waitForJoinList', rule: waitForJoinList }, // before a Pod is created that could not join
  { name: 'pause', rule: pause }, // before any rule that creates a Pod
  { name: 'cannotRun', rule: cannotRun }, // before a Pod is created or deleted
  { name: 'removeEndedPod', rule: removeEndedPod },
  { name: 'remakeJoiningPod', rule: remakeJoiningPod },
  { name: 'makeVolumeAndPod', rule: makeVolumeAndPod },
  { name: 'markPod', rule: markPod },
  { name: 'steady', rule: steady },
];

export const decide = (o: Observed): Plan<EtcdMemberStatus> =>
  planOf(RULES, o, (answer) => {
    const status = statusOf(o, answer.message);
    return { status, events: eventsFor(o, status), requeueAfterMs: answer.requeueAfterMs };
  });
