/** What to do next for one EtcdCluster. Order is policy: the first rule that answers wins. */
import type { EtcdClusterStatus } from '../api/etcd-cluster-status.ts';
import { firstAnswer, type NamedRule, type Plan } from '../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { bootstrap, discover, rebuildSeed, waitForSeed } from './rules/bootstrap.ts';
import { repairBudget } from './rules/budget.ts';
import { adoptTarget, allMembersLost, beingDeleted, heldBack, nameTaken } from './rules/lifecycle.ts';
import { anotherCluster, recordVoters, steady, waitForMembers } from './rules/running.ts';
import { repairServices } from './rules/services.ts';
import { noticesOf, statusOf, wakeAt } from './status.ts';

export const RULES: readonly NamedRule<Observed, EtcdClusterStatus>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is made for a cluster that goes
  { name: 'heldBack', rule: heldBack }, // before anything is made: never less than what was asked for
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is used
  { name: 'adoptTarget', rule: adoptTarget }, // before anything is made from an outdated target
  { name: 'allMembersLost', rule: allMembersLost }, // before any rule that could make a member
  { name: 'bootstrap', rule: bootstrap },
  { name: 'rebuildSeed', rule: rebuildSeed },
  { name: 'discover', rule: discover },
  { name: 'repairServices', rule: repairServices }, // also while waiting: members need their names in DNS
  { name: 'waitForSeed', rule: waitForSeed }, // last of those without an id
  { name: 'anotherCluster', rule: anotherCluster }, // before anything that etcd says is believed
  { name: 'recordVoters', rule: recordVoters },
  { name: 'repairBudget', rule: repairBudget }, // follows from who votes
  { name: 'waitForMembers', rule: waitForMembers },
  { name: 'steady', rule: steady },
];

export function decide(o: Observed): Plan<EtcdClusterStatus> {
  const { name, answer } = firstAnswer(RULES, o);
  const status = statusOf(o, name, answer);
  const wakeAfter = wakeAt(o, answer);
  return {
    rule: name,
    why: answer.why,
    ...(answer.latch && { latch: answer.latch }),
    steps: answer.steps ?? [],
    status,
    notices: [...(answer.notice ? [answer.notice] : []), ...noticesOf(o, status)],
    ...(wakeAfter !== undefined && { wakeAfter }),
  };
}
