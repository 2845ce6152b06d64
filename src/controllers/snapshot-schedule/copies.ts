/** The copies of a schedule at its second location: the newest one, and what its retention keeps. */
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { type ConditionUpdate, findCondition } from '../../domain/conditions.ts';
import { identity } from '../../domain/ownership.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import { present } from '../../lib/present.ts';
import { iso } from '../../lib/time.ts';
import { copyPolicyOf, jobNames } from './build.ts';
import { type JobResult, jobResultOf } from './job-result.ts';
import { isStored, newestRun, type Observed, statusBefore } from './observed.ts';

export const COPY_SUCCEEDED = 'CopySucceeded';
export const COPY_RETENTION_APPLIED = 'CopyRetentionApplied';

/**
 * To where copies are made now. Where none was made, the retention of copies could delete what is no copy: a copyTo that was
 * corrected to the location of the snapshots themselves.
 */
const isCopied = (o: Observed, { spec, status }: EtcdSnapshot): boolean =>
  status?.copy?.uri !== undefined && sameJson(spec.copyTo?.destination, o.object.spec.copyTo?.destination);
/** After which retention of the copies runs. */
export const newestCopied = (o: Observed): string | undefined => {
  const run = newestRun(o, (each) => isCopied(o, each));
  return run && identity(run).name;
};

export function copyPruneResult(o: Observed): (JobResult<'prune'> & { readonly about: string }) | undefined {
  const about = newestCopied(o);
  const name = about === undefined ? undefined : jobNames(o.object, about).copies;
  const owned = name === undefined ? undefined : o.jobs.find(({ job }) => job.metadata.name === name);
  return owned && about !== undefined ? { ...jobResultOf(owned, 'prune', o.now), about } : undefined;
}

type Copies = Pick<EtcdSnapshotScheduleStatus, 'copies'>;

const isKnown = (o: Observed, about: string, { copies }: Copies): boolean =>
  copies?.for === about && copies.policy === copyPolicyOf(o.object);

export function copyHistory(o: Observed): Copies {
  const ended = copyPruneResult(o);
  if (ended?.is !== 'done' || isKnown(o, ended.about, statusBefore(o))) return {};
  const { kept, removed, locked, hidden } = ended.result;
  const policy = copyPolicyOf(o.object);
  return { copies: { kept, removed, ...present({ locked, hidden }), time: iso(ended.at), for: ended.about, policy } };
}

/** The copied snapshot after which the retention of the copies is to run. */
export function copyPruneDue(o: Observed): string | undefined {
  const about = newestCopied(o);
  const isDone = about === undefined || isKnown(o, about, statusBefore(o)) || copyPruneResult(o) !== undefined;
  return o.object.spec.copyTo?.retention && !isDone ? about : undefined;
}

export function copyConditions(o: Observed, { copies }: Copies): readonly ConditionUpdate[] {
  const { copyTo } = o.object.spec;
  if (!copyTo) return [];
  return [copied(o), ...(copyTo.retention ? [retained(o, copies)] : [])];
}

/** Of the newest stored snapshot that has a second location. */
function copied(o: Observed): ConditionUpdate {
  const type = COPY_SUCCEEDED;
  const run = newestRun(o, (each) => isStored(each) && each.spec.copyTo !== undefined);
  if (!run)
    return (
      findCondition(statusBefore(o).conditions, type) ?? {
        type,
        status: 'Unknown',
        reason: 'Waiting',
        message: 'no snapshot is stored yet that is to be copied',
      }
    );
  const { name } = identity(run);
  const { uri, reason, message } = run.status?.copy ?? {};
  if (uri !== undefined)
    return { type, status: 'True', reason: 'SnapshotCopied', message: `${name} is copied to ${uri}` };
  return reason === undefined
    ? { type, status: 'Unknown', reason: 'Copying', message: `${name} is being copied` }
    : { type, status: 'False', reason, message: `the copy of ${name} failed: ${message ?? ''}` };
}

function retained(o: Observed, copies: Copies['copies']): ConditionUpdate {
  const type = COPY_RETENTION_APPLIED;
  const ended = copyPruneResult(o);
  if (ended?.is === 'failed')
    return { type, status: 'False', reason: ended.reason, message: `retention of the copies failed: ${ended.message}` };
  if (copies) {
    const message = `${copies.kept} copies are kept and ${copies.removed} were removed after ${copies.for}`;
    return { type, status: 'True', reason: 'Applied', message };
  }
  return { type, status: 'Unknown', reason: 'Waiting', message: 'no snapshot is copied yet' };
}
