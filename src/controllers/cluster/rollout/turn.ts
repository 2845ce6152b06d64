/** At most some clusters roll edits out at the same time: an edit of all of them that is wrong must not break one member of each. */
import { DEFAULT_PROGRESS_DEADLINE_SECONDS, type EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { isBeingDeleted } from '../../../domain/ownership.ts';
import { iso } from '../../../lib/time.ts';
import type { ClusterDecision, ClusterFacts } from '../observed.ts';
import { failedRollout } from './failed.ts';

/** Of all clusters together, as one of them observes it. */
export interface Turns {
  /** Other clusters that roll an edit out now, as namespace/name. */
  readonly others: readonly string[];
  readonly limit: number;
}

/** A cluster that makes no progress for as long as a member may take keeps the others waiting no longer. */
export function holdsTurn(cluster: EtcdCluster, now: number): boolean {
  const { turnAt, progressDeadline } = cluster.status ?? {};
  if (turnAt === undefined || isBeingDeleted(cluster) || failedRollout({ cluster })) return false;
  const lastsMs = (cluster.spec.progressDeadlineSeconds ?? DEFAULT_PROGRESS_DEADLINE_SECONDS) * 1_000;
  return now < Math.max(Date.parse(turnAt) + lastsMs, Date.parse(progressDeadline ?? '') || 0);
}

export const WAITING_FOR_TURN = 'WaitingForTurn';
const NAMED = 3;

export function turnBlockedBy({ cluster, now, turns }: ClusterFacts): Blocked | undefined {
  if (!turns || turns.others.length < turns.limit || holdsTurn(cluster, now)) return undefined;
  const { others, limit } = turns;
  const more = others.length > NAMED ? ', …' : '';
  const message = `${others.length} other clusters roll edits out now (${others.slice(0, NAMED).join(', ')}${more}), and the operator allows ${limit} at the same time`;
  return { reason: WAITING_FOR_TURN, message };
}

/** Recorded before the first member is restarted, so that other clusters, and the next operator, observe it. */
export const takeTurn = (o: ClusterFacts, message: string): ClusterDecision | undefined =>
  o.turns && !holdsTurn(o.cluster, o.now)
    ? { message: `${message}; recording first that it is the turn of this cluster`, latch: { turnAt: iso(o.now) } }
    : undefined;
