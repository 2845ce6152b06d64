/** Decides the next steps for one EtcdMember, in stages. */
import type { EtcdMemberStatus } from '../../api/etcd-member.ts';
import { allOf, compose, firstOf } from '../../runtime/compose.ts';
import type { Decision, NamedRule, Plan, Upkeep } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { clusterBeingDeleted, release } from './rules/leaving.ts';
import {
  addFinalizer,
  cannotRun,
  correctVolume,
  endQuarantine,
  makeVolumeAndPod,
  markPod,
  nameTaken,
  pause,
  remakeJoiningPod,
  removeEndedPod,
  steady,
  stopOnDataLoss,
  waitForJoinList,
} from './rules/running.ts';
import { suspended } from './rules/suspended.ts';
import { eventsFor, statusOf } from './status.ts';

type Rules = readonly NamedRule<Observed, Decision<EtcdMemberStatus>>[];

/** The first answer ends the reconcile; the status is still written. */
export const STOP: Rules = [
  { name: 'suspended', rule: suspended((o) => decide(o)) }, // first: also the finalizer is kept, unless the whole cluster is being deleted
  { name: 'release', rule: release }, // before anything is created: nothing is created for a member that is being deleted, unless its vote still counts
  { name: 'clusterBeingDeleted', rule: clusterBeingDeleted },
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is used
  { name: 'stopOnDataLoss', rule: stopOnDataLoss }, // before anything that could create an empty data directory
];

/** Every row contributes; a patch of the PVC that is refused must not keep a lost Pod from being created again. */
export const UPKEEP: readonly NamedRule<Observed, Upkeep<EtcdMemberStatus>>[] = [
  { name: 'addFinalizer', rule: addFinalizer }, // before there is anything to clean up
  { name: 'correctVolume', rule: correctVolume }, // before a user can delete the owner of the PVC
  { name: 'endQuarantine', rule: endQuarantine },
  { name: 'markPod', rule: markPod },
];

/** The first answer wins, and the last row always answers. */
export const POD: Rules = [
  { name: 'waitForJoinList', rule: waitForJoinList }, // before a Pod is created that could not join
  { name: 'pause', rule: pause }, // before any rule that creates a Pod
  { name: 'cannotRun', rule: cannotRun }, // before a Pod is created or deleted
  { name: 'removeEndedPod', rule: removeEndedPod },
  { name: 'remakeJoiningPod', rule: remakeJoiningPod },
  { name: 'makeVolumeAndPod', rule: makeVolumeAndPod },
  { name: 'steady', rule: steady },
];

export function decide(o: Observed): Plan<EtcdMemberStatus> {
  const stop = firstOf(STOP, o);
  const answer = stop ?? firstOf(POD, o);
  if (!answer) throw new Error('no rule decided');
  return compose(answer, stop ? [] : allOf(UPKEEP, o), o.memory, ({ message, requeueAfterMs }) => {
    const status = statusOf(o, message);
    return { status, events: eventsFor(o, status), requeueAfterMs };
  });
}
