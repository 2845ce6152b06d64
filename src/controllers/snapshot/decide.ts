/** What to do next for one EtcdSnapshot. Order is policy: the first rule that answers wins. */
import type { EtcdSnapshotStatus } from '../../api/etcd-snapshot.ts';
import { type NamedRule, type Plan, planOf } from '../../runtime/plan.ts';
import type { Observed } from './observed.ts';
import { jobFailed, jobRuns, resultMissing, stored } from './rules/job.ts';
import { jobLost, nameTaken, over } from './rules/once.ts';
import { missingSecrets, noAccess, noMember, start } from './rules/start.ts';
import { authNotOn, clusterBeingDeleted, clusterPaused, noCluster, noImage, notFormed } from './rules/waiting.ts';
import { eventsFor, type Said, statusOf } from './status.ts';

export const RULES: readonly NamedRule<Observed, Said>[] = [
  { name: 'over', rule: over }, // first: what has ended stays, whatever has become of the world
  { name: 'stored', rule: stored }, // before all that can be wrong by now with a Job that has done its work
  { name: 'jobFailed', rule: jobFailed },
  { name: 'resultMissing', rule: resultMissing },
  { name: 'jobRuns', rule: jobRuns }, // before anything that looks at the cluster: it may be gone while the stream goes on
  { name: 'nameTaken', rule: nameTaken }, // before anything of that name is made
  { name: 'jobLost', rule: jobLost }, // before anything that would make it again
  { name: 'noImage', rule: noImage },
  { name: 'noCluster', rule: noCluster },
  { name: 'clusterGoing', rule: clusterBeingDeleted },
  { name: 'parked', rule: clusterPaused }, // what cannot become so by waiting fails before anything that waits
  { name: 'lacking', rule: missingSecrets }, // what somebody has to give is said while there is time, not after the cluster is ready
  { name: 'notFormed', rule: notFormed },
  { name: 'authNotOn', rule: authNotOn }, // a Job that was made too early could not log in
  { name: 'noWayIn', rule: noAccess },
  { name: 'noMember', rule: noMember }, // no Job that has nobody to dial
  { name: 'start', rule: start },
];

export const decide = (o: Observed): Plan<EtcdSnapshotStatus> =>
  planOf(RULES, o, (said) => {
    const status = statusOf(o, said);
    return { status, events: eventsFor(o, status), requeueAfterMs: said.requeueAfterMs };
  });
