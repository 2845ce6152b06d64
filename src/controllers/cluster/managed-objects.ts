/** Whether the objects that the operator manages beside the members are as it wrote them. */
import { type ConditionUpdate, conditionOf } from '../../domain/conditions.ts';
import type { Failure, UpkeepTask } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import { type ClusterFacts, isFormed } from './observed.ts';

/** Present only when False: it costs no write while all is well. */
export const MANAGED_OBJECTS_IN_SYNC = 'ManagedObjectsInSync';

const REASONS = { refused: 'Refused', overwritten: 'Overwritten', failed: 'Failed' } as const;

type Tasks = readonly UpkeepTask<ClusterCall>[];

const isOf = (tasks: Tasks, { row, target }: Failure): boolean =>
  tasks.some((task) => task.row === row && task.target === target);

/**
 * Failures of what is still wanted; what another writer reverts is as wanted for moments. Calls that etcd refuses for now are
 * retried, and say nothing about an object.
 */
function failuresOf({ memory }: ClusterFacts, tasks: Tasks) {
  const stands = (failure: Failure): boolean =>
    isOf(tasks, failure) || (failure.is === 'overwritten' && failure.retryInMs > 0);
  return memory.failures.flatMap((failure) =>
    failure.in === 'upkeep' && failure.is !== 'later' && failure.is !== 'dropped' && stands(failure)
      ? [{ ...failure, reason: REASONS[failure.is] }]
      : [],
  );
}

export function inSyncConditions(o: ClusterFacts, tasks: Tasks): readonly ConditionUpdate[] {
  const failures = failuresOf(o, tasks).toSorted((a, b) => (a.target < b.target ? -1 : 1));
  const [first] = failures;
  if (!first) return [];
  const message = [...new Set(failures.map((failure) => `${failure.target}: ${failure.message}`))].join('; ');
  const remedy = 'The operator tries again at growing intervals; members are repaired meanwhile';
  return [conditionOf(MANAGED_OBJECTS_IN_SYNC)('False', first.reason, `${message}. ${remedy}`)];
}

/** Latches that the API server does not keep. */
export const droppedBy = ({ memory }: ClusterFacts): readonly Failure[] =>
  memory.failures.filter(({ is }) => is === 'dropped');

/** A call that etcd refuses once or twice is usual while it elects a leader. */
const isLasting = ({ is, times }: Failure): boolean => is === 'later' && times > 2;

/** Why steps of the last reconcile failed, without objects of a running cluster, which have their own condition. */
export const stepFailures = (o: ClusterFacts): readonly string[] => {
  const reported = o.memory.failures.filter((each) => !isFormed(o) || each.in === 'steps' || isLasting(each));
  return [...new Set(reported.map(({ message }) => message))];
};
