/** Decides the next steps for one EtcdSnapshot. The order is policy: the first rule that returns a decision wins. */
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { planOf } from '../../runtime/compose.ts';
import type { NamedRule, Plan } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { copy } from './rules/copy.ts';
import { jobFailed, jobRuns, resultMissing, stored } from './rules/job.ts';
import { jobLost, nameTaken, over } from './rules/once.ts';
import { missingSecrets, noAccess, noMember, start } from './rules/start.ts';
import { authNotOn, clusterBeingDeleted, clusterPaused, noCluster, noImage, notFormed } from './rules/waiting.ts';
import { eventsFor, type SnapshotDecision, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, SnapshotDecision>[] = [
  { name: 'copy', rule: copy }, // before what ends the reconcile of a finished snapshot: only such a one is copied
  { name: 'over', rule: over }, // before all that starts: a finished snapshot never changes again
  { name: 'stored', rule: stored }, // before the rules about a failed Job: the agent may have stored the snapshot all the same
  { name: 'jobFailed', rule: jobFailed },
  { name: 'resultMissing', rule: resultMissing },
  { name: 'jobRuns', rule: jobRuns }, // before the rules about the cluster: it may be deleted while the agent still uploads
  { name: 'nameTaken', rule: nameTaken }, // before a Job of that name is created
  { name: 'jobLost', rule: jobLost }, // before any rule that would take it again
  { name: 'noImage', rule: noImage },
  { name: 'noCluster', rule: noCluster },
  { name: 'clusterBeingDeleted', rule: clusterBeingDeleted },
  { name: 'parked', rule: clusterPaused }, // what waiting cannot solve fails before the rules that wait
  { name: 'lacking', rule: missingSecrets }, // a user learns about missing Secrets while the cluster still forms, not after
  { name: 'notFormed', rule: notFormed },
  { name: 'authNotOn', rule: authNotOn }, // a Job that is created before auth is enabled could not authenticate
  { name: 'noWayIn', rule: noAccess },
  { name: 'noMember', rule: noMember }, // no Job without a member to dial
  { name: 'start', rule: start },
];

export const decide = (o: Observed): Plan<EtcdSnapshotStatus> =>
  planOf(RULES, o, (decision) => {
    const status = statusOf(o, decision);
    return { status, events: eventsFor(o, status), requeueAfterMs: decision.requeueAfterMs };
  });
