/** The result of a Job of this schedule. Its Pods' messages come from a user's namespace, and are validated. */
import { OOM_KILLED, OUT_OF_MEMORY, parseResult, type Result, type Success } from '../../domain/agent-result.ts';
import { endOf, isStopping, settledAt, troubleSuffix } from '../../domain/job.ts';
import type { Pod } from '../../gen/kube.ts';
import type { OwnedJob } from './observed.ts';

type TaskOf = Success['task'];

export type JobResult<Task extends TaskOf> =
  | { readonly is: 'running'; readonly message: string /** Requeue then. */; readonly until?: number }
  | { readonly is: 'failed'; readonly reason: string; readonly message: string; readonly at: number }
  | { readonly is: 'done'; readonly result: Extract<Success, { readonly task: Task }>; readonly at: number };

const ended = (pod: Pod) =>
  [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])].flatMap(
    ({ state }) => state?.terminated ?? [],
  );

/** Of all containers, the one that reports a result of this task or has failed. */
const resultIn = (pod: Pod, task: TaskOf): Result | undefined =>
  ended(pod)
    .flatMap(({ message }) => parseResult(message) ?? [])
    .find((result) => !result.ok || result.task === task);

export function jobResultOf<Task extends TaskOf>({ job, pods }: OwnedJob, task: Task, now: number): JobResult<Task> {
  const condition = endOf(job);
  const name = `Job ${job.metadata.name ?? ''}`;
  const last = pods.at(-1);
  if (!condition) return { is: 'running', message: `${name} runs${troubleSuffix(last, task)}` };
  const at = Date.parse(condition.lastTransitionTime ?? '') || now;
  const result = pods.map((pod) => resultIn(pod, task)).findLast((each) => each !== undefined);
  if (condition.type === 'Complete' && result?.ok === true)
    return { is: 'done', result: result as Extract<Success, { readonly task: Task }>, at };
  const failed = (reason: string, message: string): JobResult<Task> => ({ is: 'failed', reason, message, at });
  if (condition.type === 'Failed' && result?.ok === false) return failed(result.reason, result.message);
  if (condition.type === 'Failed' && last && ended(last).some(({ reason }) => reason === OOM_KILLED))
    return failed(
      OUT_OF_MEMORY,
      `${name} was killed at its memory limit${task === 'drill' ? ', which proves nothing about the snapshot: raise drill.resources.limits.memory' : ''}`,
    );
  const until = settledAt(job);
  if (now < until && isStopping(job)) return { is: 'running', message: `${name} is being stopped`, until };
  if (condition.reason === 'DeadlineExceeded') return failed('TimedOut', `${name} took too long and was stopped`);
  if (now < until) return { is: 'running', message: `${name} has finished: waiting for the status of its Pod`, until };
  const details = [condition.reason, condition.message].filter(Boolean).join(': ');
  return condition.type === 'Failed'
    ? failed('JobFailed', `${name} failed: ${details}${troubleSuffix(last, task)}`)
    : failed('ResultMissing', `${name} is complete, but none of its Pods reports a result`);
}
