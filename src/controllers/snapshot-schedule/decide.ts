/** What to do next for one EtcdSnapshotSchedule. Order is policy: the first rule that answers wins. */
import type { EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { type Decision, type NamedRule, type Plan, planOf } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { drill } from './rules/drill.ts';
import { trimHistory, waitForNext } from './rules/history.ts';
import { beingDeleted, record } from './rules/record.ts';
import { prune } from './rules/retention.ts';
import { startSnapshot } from './rules/start.ts';
import { eventsFor, requeueAfterMs, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, Decision<EtcdSnapshotScheduleStatus>>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is made for a schedule that goes
  { name: 'record', rule: record }, // before anything that would make it forgotten
  { name: 'startSnapshot', rule: startSnapshot }, // before all that can wait
  { name: 'drill', rule: drill },
  { name: 'prune', rule: prune }, // after it: what was just stored may turn out to be of no use
  { name: 'trimHistory', rule: trimHistory }, // after the Jobs that are made from what it removes
  { name: 'waitForNext', rule: waitForNext },
];

export const decide = (o: Observed): Plan<EtcdSnapshotScheduleStatus> =>
  planOf(RULES, o, () => {
    const status = statusOf(o);
    return { status, events: eventsFor(o, status), requeueAfterMs: requeueAfterMs(o) };
  });
