/** Rules by which a snapshot is taken once, and never again. */
import { snapshotJobName } from '../../../api/names.ts';
import { identity, isBeingDeleted } from '../../../domain/ownership.ts';
import { isOver, type Observed } from '../observed.ts';
import { failed, pending, type Said } from '../status.ts';
import { remainingMs } from '../waiting.ts';

/** Its Job goes with it, by its owner reference. */
export const over = (o: Observed): Said | undefined => {
  if (isOver(o.object)) return { message: 'this snapshot has ended: nothing is done for it any more' };
  return isBeingDeleted(o.object) ? { message: 'this snapshot is being deleted' } : undefined;
};

/** A Job that is not ours is never looked into: what its Pods report could be about anything. */
export const nameTaken = (o: Observed): Said | undefined => {
  if (o.job.is !== 'foreign') return undefined;
  const job = snapshotJobName(identity(o.object).name);
  const held = `Job ${job} exists and belongs to ${o.job.owner}`;
  const left = remainingMs(o);
  // Who deletes a snapshot and makes it anew at once is faster than the garbage collector.
  if (o.isLeaving && left > 0) return pending('NameConflict', `${held}: waiting for it to be gone`, left);
  return failed('NameConflict', `${held}: nothing was started; delete that Job, or give the EtcdSnapshot another name`);
};

/** Whether it has stored anything cannot be told any more, and to take a second snapshot was not asked for. */
export const jobLost = (o: Observed): Said | undefined =>
  o.object.status?.phase !== 'Started'
    ? undefined
    : failed(
        'SnapshotJobLost',
        `Job ${snapshotJobName(identity(o.object).name)} is gone and has told no result: somebody deleted it, or it ended while no operator looked. Look into the destination, or create another EtcdSnapshot`,
      );
