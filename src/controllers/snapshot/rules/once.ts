/** Rules that a snapshot is taken at most once. */
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { lookupJob } from '../lookup.ts';
import { isOver, jobNameOf, type Observed } from '../observed.ts';
import { failed, pending, type SnapshotDecision } from '../status.ts';
import { remainingMs } from '../waiting.ts';

/** The garbage collector deletes the Job with the snapshot, by its owner reference. */
export const over = (o: Observed): SnapshotDecision | undefined => {
  if (isOver(o.object)) return { message: 'this snapshot has finished: nothing is left to do' };
  return isBeingDeleted(o.object) ? { message: 'this snapshot is being deleted' } : undefined;
};

/** The Pods of a foreign Job are never read: their result could be about anything. */
export const nameTaken = (o: Observed): SnapshotDecision | undefined => {
  if (o.job.is !== 'foreign') return undefined;
  const job = jobNameOf(o);
  const held = `Job ${job} exists and belongs to ${o.job.owner}`;
  const left = remainingMs(o);
  // A user who recreates a snapshot right after deleting it is faster than the garbage collector.
  if (o.isLeaving && left > 0) return pending('NameConflict', `${held}: waiting until it is deleted`, left);
  return failed('NameConflict', `${held}: nothing was started; delete that Job, or give the EtcdSnapshot another name`);
};

/**
 * The store knows whether the lost Job has stored the snapshot: ten minutes without an operator are enough to lose the
 * Job of a good one. Nothing is taken a second time, which the user did not ask for.
 */
export const jobLost = (o: Observed): SnapshotDecision | undefined => {
  if (o.object.status?.phase !== 'Started' && !o.earlier) return undefined;
  const lost = o.earlier
    ? `Job ${identity(o.earlier).name} of the Go operator is complete, and its result is only in the log of its Pod`
    : `Job ${jobNameOf(o)} was deleted before the operator received its result`;
  const blocked = o.refusal !== undefined && remainingMs(o) <= 0;
  if (!o.cluster || o.operatorImage === '' || blocked)
    return failed('SnapshotJobLost', `${lost}. Check the destination, or create another EtcdSnapshot`);
  const job = jobNameOf(o);
  const message = `${lost}: Job ${job} looks the snapshot up in the store`;
  // This operator records the members that it streams from before it creates a Job.
  const withoutManifest = o.earlier !== undefined || o.object.status?.streamsFrom === undefined;
  const object = lookupJob({ object: o.object, cluster: o.cluster, image: o.operatorImage, job, withoutManifest });
  return { message, becomes: { phase: 'Started', reason: 'JobCreated' }, steps: [{ do: 'create', object }] };
};
