/** Jobs that look after what is stored, and records that are not needed any more. */
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../../api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleStatus } from '../../../api/etcd-snapshot-schedule.ts';
import { endOf } from '../../../domain/job.ts';
import { etcdSnapshots } from '../../../api/names.ts';
import { isAllowed } from '../../../api/security.ts';
import { type Answer, seen } from '../../../runtime/plan.ts';
import { drillJob, jobNames, pruneJob } from '../build.ts';
import { isPruned, unrestored } from '../run-history.ts';
import { hasFailed, identity, isGoing, isStored, type Observed, slotIn, statusBefore } from '../observed.ts';

type Said = Answer<EtcdSnapshotScheduleStatus> | undefined;

/** Whom a Job works for, when one can be made. */
const employer = (o: Observed): EtcdCluster | undefined =>
  o.operatorImage !== '' && o.cluster && !isGoing(o.cluster) ? o.cluster : undefined;

/** Two that remove at once would count each other's work. */
const isBusy = (o: Observed, task: 'prune' | 'drill'): boolean =>
  o.jobs.some(
    ({ job }) => job.metadata.name?.startsWith(`${identity(o.object).name}-${task}-`) === true && !endOf(job),
  );

/** Also when it has failed: it is made again when it is gone. */
const isMade = (o: Observed, task: 'prune' | 'drill', run: string): boolean =>
  o.jobs.some(({ job }) => job.metadata.name === jobNames(o.object, run)[task]);

/** Why nothing may be removed: older ones may be all that can be restored. */
export function pruneHeldUp(o: Observed): string | undefined {
  const failed = o.object.spec.drill && unrestored(statusBefore(o));
  return failed
    ? `nothing is removed until one is restored on trial again: ${failed.name} could not be (${failed.reason})`
    : undefined;
}

export function prune(o: Observed): Said {
  const { retention } = o.object.spec;
  if (pruneHeldUp(o) !== undefined || isBusy(o, 'drill')) return undefined;
  const run = statusBefore(o).lastSuccessful?.name;
  const cluster = employer(o);
  if (!retention || run === undefined || !cluster || isPruned(o) || isMade(o, 'prune', run) || isBusy(o, 'prune'))
    return undefined;
  const { object: schedule, operatorImage, now } = o;
  const object = pruneJob({ schedule, cluster, operatorImage, run, retention, now });
  return { why: `what the retention does not keep is to go, after ${run}`, steps: [{ do: 'create', object }] };
}

/** The first that is stored is tried out, then every so many, and after one that failed the very next. */
export function isDrillDue(o: Observed): boolean {
  const { lastDrill, lastSuccessful, successes = 0 } = statusBefore(o);
  const { drill } = o.object.spec;
  if (!drill || !lastSuccessful || lastDrill?.name === lastSuccessful.name) return false;
  return !lastDrill?.succeeded || successes - (lastDrill.after ?? 0) >= (drill.every ?? 1);
}

/** What a drill is made from, or why the last one that is stored cannot be tried out. */
function trial(o: Observed): { readonly cluster: EtcdCluster; readonly run: EtcdSnapshot } | string {
  const cluster = employer(o);
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
const isDrillToBeMade = (o: Observed): boolean =>
  isDrillDue(o) && !isMade(o, 'drill', statusBefore(o).lastSuccessful?.name ?? '');

/** Why what is due is not done, and will not be by itself. */
export function drillHeldUp(o: Observed): string | undefined {
  const found = isDrillToBeMade(o) ? trial(o) : undefined;
  return typeof found === 'string' ? `${statusBefore(o).lastSuccessful?.name} is not tried out: ${found}` : undefined;
}

/** Not while a Job removes: it was made with the snapshot to protect, and would remove one that this drill restores. */
export function drill(o: Observed): Said {
  if (!isDrillToBeMade(o) || isBusy(o, 'drill') || isBusy(o, 'prune')) return undefined;
  const found = trial(o);
  if (typeof found === 'string') return undefined;
  const { object: schedule, operatorImage, images } = o;
  const object = drillJob({ schedule, operatorImage, images, ...found });
  return { why: `${identity(found.run).name} is to be tried out`, steps: [{ do: 'create', object }] };
}

const SUCCESSFUL = 3;
const FAILED = 3;

/** Only what is recorded may go, and never that which the status names as the last good one. */
export function trimHistory(o: Observed): Said {
  const { lastSuccessful, lastFailed } = statusBefore(o);
  const { successfulSnapshotsHistoryLimit = SUCCESSFUL, failedSnapshotsHistoryLimit = FAILED } = o.object.spec;
  const beyond = (ended: (run: EtcdSnapshot) => boolean, limit: number, recorded: string | undefined) => {
    const known = o.runs.filter(
      (run) => ended(run) && recorded !== undefined && slotIn(o, identity(run).name) <= slotIn(o, recorded),
    );
    return known.slice(0, Math.max(0, known.length - limit));
  };
  const old = [
    ...beyond(isStored, successfulSnapshotsHistoryLimit, lastSuccessful?.name),
    ...beyond(hasFailed, failedSnapshotsHistoryLimit, lastFailed?.name),
  ].filter((run) => !isGoing(run) && identity(run).name !== lastSuccessful?.name);
  if (old.length === 0) return undefined;
  return {
    why: `the limits of the history do not keep ${old.map((run) => identity(run).name).join(', ')}`,
    steps: old.map((run) => ({ do: 'delete', what: seen(etcdSnapshots.kind, run) })),
  };
}

export const waitForNext = (o: Observed): Answer<EtcdSnapshotScheduleStatus> => ({
  why: `nothing is to be done for ${identity(o.object).name} now`,
});
