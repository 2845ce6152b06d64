/** Decides the phase of one EtcdDefrag. The order is policy: the first rule that returns a decision wins. */
import type { EtcdDefragStatus } from '../../api/etcd-defrag.ts';
import { planOf } from '../../runtime/compose.ts';
import type { NamedRule, Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { awaitsFleet, noCluster, over, queued, tooLate } from './rules/once.ts';
import { disarming, finished, notStarted, runs } from './rules/run.ts';
import { type DefragDecision, eventsFor, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, DefragDecision>[] = [
  { name: 'over', rule: over }, // first: a finished run never changes again
  { name: 'noCluster', rule: noCluster },
  { name: 'queued', rule: queued }, // its deadline counts from its turn on
  { name: 'awaitsFleet', rule: awaitsFleet }, // before its deadline, which does not count meanwhile
  { name: 'tooLate', rule: tooLate },
  { name: 'notStarted', rule: notStarted },
  { name: 'runs', rule: runs },
  { name: 'disarming', rule: disarming },
  { name: 'finished', rule: finished },
];

export const decide = (o: Observed): Plan<EtcdDefragStatus> =>
  planOf(RULES, o, (decision) => {
    const status = statusOf(o, decision);
    return { status, events: eventsFor(o, status), requeueAfterMs: decision.requeueAfterMs };
  });
