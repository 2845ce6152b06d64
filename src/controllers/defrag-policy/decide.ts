/** Decides the next steps for one EtcdDefragPolicy. The order is policy: the first rule that returns a decision wins. */
import type { EtcdDefragPolicyStatus } from '../../api/etcd-defrag-policy.ts';
import { planOf } from '../../runtime/compose.ts';
import type { Decision, NamedRule, Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { beingDeleted, record, startRun, trimHistory, waitForNext } from './rules/run.ts';
import { eventsFor, requeueAfterMs, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, Decision<EtcdDefragPolicyStatus>>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is created for a policy that is being deleted
  { name: 'record', rule: record }, // before any rule that deletes what it is recorded from
  { name: 'startRun', rule: startRun },
  { name: 'trimHistory', rule: trimHistory },
  { name: 'waitForNext', rule: waitForNext },
];

export const decide = (o: Observed): Plan<EtcdDefragPolicyStatus> =>
  planOf(RULES, o, () => {
    const status = statusOf(o);
    return { status, events: eventsFor(o, status), requeueAfterMs: requeueAfterMs(o) };
  });
