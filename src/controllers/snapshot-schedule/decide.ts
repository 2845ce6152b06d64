/** Decides the next steps for one EtcdSnapshotSchedule. The order is policy: the first rule that returns a decision wins. */
import type { EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { planOf } from '../../runtime/compose.ts';
import type { Decision, NamedRule, Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { drill } from './rules/drill.ts';
import { trimHistory, waitForNext } from './rules/history.ts';
import { probe } from './rules/probe.ts';
import { beingDeleted, record } from './rules/record.ts';
import { prune, pruneCopies } from './rules/retention.ts';
import { scrub } from './rules/scrub.ts';
import { startSnapshot } from './rules/start.ts';
import { eventsFor, requeueAfterMs, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, Decision<EtcdSnapshotScheduleStatus>>[] = [
  { name: 'beingDeleted', rule: beingDeleted }, // first: nothing is created for a schedule that is being deleted
  { name: 'record', rule: record }, // before any rule that deletes what it is recorded from
  { name: 'startSnapshot', rule: startSnapshot }, // before all rules that can wait
  { name: 'probe', rule: probe }, // does not hold up a snapshot that is due: it finds out the same
  { name: 'drill', rule: drill },
  { name: 'prune', rule: prune }, // after the drill: the newest snapshot may turn out to be damaged
  { name: 'pruneCopies', rule: pruneCopies }, // after the retention of the snapshots themselves: one Job at a time
  { name: 'scrub', rule: scrub }, // after the Jobs for the newest snapshot: any of the following days will do
  { name: 'trimHistory', rule: trimHistory }, // after the Jobs that need the EtcdSnapshots that it deletes
  { name: 'waitForNext', rule: waitForNext },
];

export const decide = (o: Observed): Plan<EtcdSnapshotScheduleStatus> =>
  planOf(RULES, o, () => {
    const status = statusOf(o);
    return { status, events: eventsFor(o, status), requeueAfterMs: requeueAfterMs(o) };
  });
