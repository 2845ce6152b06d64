/** The deadline of the change in progress, as the status records it. */
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { isSuspended, SUSPENDED } from '../../../domain/suspend.ts';
import type { Observed } from '../observed.ts';
import { progressDeadline } from '../spec-drift.ts';
import { membersOnTrial } from './failure.ts';

/** The time that a change spent suspended does not count: a resumed one has the whole progressDeadlineSeconds again. */
export const resumedDeadline = (o: Observed, before: EtcdClusterStatus): Partial<EtcdClusterStatus> =>
  before.progressDeadline !== undefined && !isSuspended(o.cluster) && findCondition(before.conditions, SUSPENDED)
    ? { progressDeadline: progressDeadline(o) }
    : {};

/**
 * What waits for a user, or for a time, has no deadline; a member that has the edit and does not serve always has one. `waits`:
 * all other members wait.
 */
export function keptDeadline(o: Observed, deadline: string | undefined, waits: boolean): Partial<EtcdClusterStatus> {
  const kept = membersOnTrial(o).length > 0 ? (deadline ?? progressDeadline(o)) : waits ? undefined : deadline;
  return kept === undefined ? {} : { progressDeadline: kept };
}
