/** What to do next for one EtcdMember. Order is policy: the first rule that answers wins. */
import type { EtcdMemberStatus } from '../api/etcd-member.ts';
import { firstAnswer, type NamedRule, type Plan } from '../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { clusterGoing, release } from './rules/leaving.ts';
import {
  addFinalizer,
  cannotRun,
  labelRole,
  makeVolumeAndPod,
  nameTaken,
  removeEndedPod,
  steady,
  stopOnDataLoss,
} from './rules/running.ts';
import { noticesOf, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, EtcdMemberStatus>[] = [
  { name: 'release', rule: release }, // first: nothing is made for a member that goes
  { name: 'clusterGoing', rule: clusterGoing },
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is used
  { name: 'stopOnDataLoss', rule: stopOnDataLoss }, // before anything that could make an empty data directory
  { name: 'addFinalizer', rule: addFinalizer }, // before there is anything to clean up
  { name: 'cannotRun', rule: cannotRun }, // before a Pod is made or taken away
  { name: 'removeEndedPod', rule: removeEndedPod },
  { name: 'makeVolumeAndPod', rule: makeVolumeAndPod },
  { name: 'labelRole', rule: labelRole },
  { name: 'steady', rule: steady },
];

export function decide(o: Observed): Plan<EtcdMemberStatus> {
  const { name, answer } = firstAnswer(RULES, o);
  const status = statusOf(o, answer.why);
  return {
    rule: name,
    why: answer.why,
    ...(answer.latch && { latch: answer.latch }),
    steps: answer.steps ?? [],
    status,
    notices: [...(answer.notice ? [answer.notice] : []), ...noticesOf(o, status)],
    ...(answer.wakeAfter !== undefined && { wakeAfter: answer.wakeAfter }),
  };
}
