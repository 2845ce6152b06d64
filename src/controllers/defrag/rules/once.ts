/** Rules that an EtcdDefrag runs once, in its turn, and is deleted some time after it has finished. */
import { isFinished, waitsForFleet } from '../../../domain/defragmentation.ts';
import { isBeingDeleted } from '../../../domain/ownership.ts';
import { DEFRAG_DEADLINE_MS, MAX_REQUEUE_MS } from '../../../domain/timing.ts';
import { refTo } from '../../../runtime/plan.ts';
import { clusterName, membersOf, type Observed, statusBefore, waitingFor } from '../observed.ts';
import type { DefragDecision } from '../status.ts';

export function over(o: Observed): DefragDecision | undefined {
  if (isBeingDeleted(o.object)) return { message: 'this EtcdDefrag is being deleted' };
  if (!isFinished(o.object)) return undefined;
  const { ttlSecondsAfterFinished: ttl } = o.object.spec;
  const message = 'this EtcdDefrag has finished: nothing is left to do';
  const completedAt = Date.parse(statusBefore(o).completedAt ?? '');
  if (ttl === undefined || Number.isNaN(completedAt)) return { message };
  const leftMs = completedAt + ttl * 1_000 - o.now;
  if (leftMs > 0) return { message, requeueAfterMs: Math.min(leftMs, MAX_REQUEUE_MS) };
  const what = refTo('EtcdDefrag', o.object);
  return { message: 'ttlSecondsAfterFinished has passed: deleting it', steps: [{ do: 'delete', what }] };
}

export function noCluster(o: Observed): DefragDecision | undefined {
  if (o.cluster && !isBeingDeleted(o.cluster)) return undefined;
  const what = o.cluster ? 'is being deleted' : 'does not exist in this namespace';
  const message = `EtcdCluster ${clusterName(o)} ${what}: nothing is defragmented`;
  return { message, becomes: { phase: 'Failed', reason: 'ClusterNotFound' } };
}

export const queued = ({ ahead }: Observed): DefragDecision | undefined =>
  ahead === undefined
    ? undefined
    : {
        message: `EtcdDefrag ${ahead} of the same cluster goes first`,
        becomes: { phase: 'Pending', reason: 'Queued', admitted: false },
      };

/** In a large fleet that may take hours: the deadline counts from its start on. */
export const awaitsFleet = (o: Observed): DefragDecision | undefined =>
  membersOf(o).length === 0 && waitsForFleet(o.object) && waitingFor(o) === statusBefore(o).waitingFor
    ? { message: statusBefore(o).waitingFor ?? '', becomes: { phase: 'Pending', reason: 'Queued' } }
    : undefined;

/** The time that a member takes has a limit of its own, by the size of its database. */
export function tooLate(o: Observed): DefragDecision | undefined {
  const before = statusBefore(o);
  const isBusy = o.cluster?.status?.defragmentation?.uid === o.object.metadata.uid;
  const times = [before.admittedAt, before.startedAt, ...membersOf(o).map(({ finishedAt }) => finishedAt)];
  const known = times.flatMap((time) => (time === undefined ? [] : [Date.parse(time)]));
  const starts = membersOf(o).length > 0 && before.startedAt === undefined; // after it has waited for other clusters
  if (isBusy || starts || known.length === 0 || o.now - Math.max(...known) <= DEFRAG_DEADLINE_MS) return undefined;
  const open = membersOf(o).filter(({ outcome }) => outcome === 'Pending');
  const which = open.length === 0 ? 'no member' : open.map(({ name }) => name).join(', ');
  const message = `nothing could be defragmented for 45 minutes, and ${which} still waits: ${before.waitingFor ?? 'see the conditions of the EtcdCluster'}`;
  return { message, becomes: { phase: 'Failed', reason: 'DeadlineExceeded' } };
}
