/** The Jobs that look after what is stored: which are due, and what holds each of them up. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { isAllowed } from '../../api/security.ts';
import { endOf } from '../../domain/job.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { jobNames } from './build.ts';
import { type Observed, statusBefore } from './observed.ts';
import { unrestored } from './run-history.ts';

/** Whom a Job works for, when one can be made. */
export const jobOwner = (o: Observed): EtcdCluster | undefined =>
  o.operatorImage !== '' && o.cluster && !isBeingDeleted(o.cluster) ? o.cluster : undefined;

/** Two that remove at once would count each other's work. */
export const isBusy = (o: Observed, task: 'prune' | 'drill'): boolean =>
  o.jobs.some(
    ({ job }) => job.metadata.name?.startsWith(`${identity(o.object).name}-${task}-`) === true && !endOf(job),
  );

/** Also when it has failed: it is made again when it is gone. */
export const isMade = (o: Observed, task: 'prune' | 'drill', run: string): boolean =>
  o.jobs.some(({ job }) => job.metadata.name === jobNames(o.object, run)[task]);

/** Why nothing may be removed: older ones may be all that can be restored. */
export function pruneBlockedBy(o: Observed): string | undefined {
  const failed = o.object.spec.drill && unrestored(statusBefore(o));
  return failed
    ? `nothing is removed until one is restored on trial again: ${failed.name} could not be (${failed.reason})`
    : undefined;
}

/** The first that is stored is tried out, then every so many, and after one that failed the very next. */
export function isDrillDue(o: Observed): boolean {
  const { lastDrill, lastSuccessful, successes = 0 } = statusBefore(o);
  const { drill } = o.object.spec;
  if (!drill || !lastSuccessful || lastDrill?.name === lastSuccessful.name) return false;
  return !lastDrill?.succeeded || successes - (lastDrill.after ?? 0) >= (drill.every ?? 1);
}

/** What a drill is made from, or why the last one that is stored cannot be tried out. */
export function drillInput(o: Observed): { readonly cluster: EtcdCluster; readonly run: EtcdSnapshot } | string {
  const cluster = jobOwner(o);
  if (!cluster) return o.operatorImage === '' ? 'the operator was not told its own image' : 'its EtcdCluster is gone';
  const name = statusBefore(o).lastSuccessful?.name;
  const run = o.runs.find((each) => identity(each).name === name);
  if (!run) return 'that EtcdSnapshot was deleted, and the next one is tried out';
  const repository = cluster.spec.image?.repository;
  if (repository !== undefined && !isAllowed(o.images, repository))
    return `image.repository ${repository} of its EtcdCluster is not on the administrator's list of etcd images`;
  return { cluster, run };
}

/** Whether a drill of the last one that is stored has yet to be made. */
export const isDrillToBeMade = (o: Observed): boolean =>
  isDrillDue(o) && !isMade(o, 'drill', statusBefore(o).lastSuccessful?.name ?? '');

/** Why what is due is not done, and will not be by itself. */
export function drillBlockedBy(o: Observed): string | undefined {
  const found = isDrillToBeMade(o) ? drillInput(o) : undefined;
  return typeof found === 'string' ? `${statusBefore(o).lastSuccessful?.name} is not tried out: ${found}` : undefined;
}
