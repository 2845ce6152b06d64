/** Prune and drill Jobs: which are due, and what blocks them. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { isAllowed } from '../../api/security.ts';
import { endOf } from '../../domain/job.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { jobNames } from './build.ts';
import { type Observed, statusBefore } from './observed.ts';
import { unrestored } from './run-history.ts';

/** The cluster whose placement and image a Job uses, if a Job can be created. */
export const jobOwner = (o: Observed): EtcdCluster | undefined =>
  o.operatorImage !== '' && o.notPermitted === undefined && o.cluster && !isBeingDeleted(o.cluster)
    ? o.cluster
    : undefined;

/** Two prune Jobs at once would count each other's removals. */
export const isBusy = (o: Observed, task: 'prune' | 'drill' | 'scrub'): boolean =>
  o.jobs.some(
    ({ job }) => job.metadata.name?.startsWith(`${identity(o.object).name}-${task}-`) === true && !endOf(job),
  );

/** Also when it has failed: it is created again after its TTL has deleted it. */
export const isMade = (o: Observed, task: 'prune' | 'drill', run: string): boolean =>
  o.jobs.some(({ job }) => job.metadata.name === jobNames(o.object, run)[task]);

/** Why nothing may be removed: after a failed drill, older snapshots may be the only ones that can be restored. */
export function pruneBlockedBy(o: Observed): string | undefined {
  const failed = o.object.spec.drill && unrestored(statusBefore(o));
  return failed
    ? `no snapshot is removed until a restore drill succeeds again: the drill of ${failed.name} failed (${failed.reason})`
    : undefined;
}

/** A drill is due for the first stored snapshot, then for every `drill.every`-th, and for the next one after a failed drill. */
export function isDrillDue(o: Observed): boolean {
  const { lastDrill, lastSuccessful, successes = 0 } = statusBefore(o);
  const { drill } = o.object.spec;
  if (!drill || !lastSuccessful || lastDrill?.name === lastSuccessful.name) return false;
  return !lastDrill?.succeeded || successes - (lastDrill.after ?? 0) >= (drill.every ?? 1);
}

/** The input of a drill, or why the last stored snapshot cannot be drilled. */
export function drillInput(o: Observed): { readonly cluster: EtcdCluster; readonly run: EtcdSnapshot } | string {
  const cluster = jobOwner(o);
  if (!cluster)
    return (
      o.notPermitted ??
      (o.operatorImage === '' ? 'the operator image is not configured' : 'its EtcdCluster does not exist')
    );
  const name = statusBefore(o).lastSuccessful?.name;
  const run = o.runs.find((each) => identity(each).name === name);
  if (!run) return 'the EtcdSnapshot was deleted; the next one gets a restore drill';
  const repository = cluster.spec.image?.repository;
  if (repository !== undefined && !isAllowed(o.images, repository))
    return `image.repository ${repository} of its EtcdCluster is not on the administrator's list of etcd images`;
  return { cluster, run };
}

/** Whether the drill of the last stored snapshot has yet to be created. */
export const isDrillToBeMade = (o: Observed): boolean =>
  isDrillDue(o) && !isMade(o, 'drill', statusBefore(o).lastSuccessful?.name ?? '');

/** Why a due drill is not created, and will not be without a user's action. */
export function drillBlockedBy(o: Observed): string | undefined {
  const found = isDrillToBeMade(o) ? drillInput(o) : undefined;
  return typeof found === 'string'
    ? `${statusBefore(o).lastSuccessful?.name} gets no restore drill: ${found}`
    : undefined;
}
