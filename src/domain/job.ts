/** Predicates about Jobs that several controllers share. */
import type { Job, JobCondition, Pod } from '../gen/kube.ts';
import { controllerOf } from './ownership.ts';
import { troubleOf } from './pod.ts';
import { POD_SETTLES_MS, POD_STOPS_MS } from './timing.ts';

type Named = Pick<Job, 'metadata'>;
type JobLike = Pick<Job, 'metadata' | 'status'>;

const trueCondition = (job: JobLike, type: string): JobCondition | undefined =>
  job.status?.conditions?.find((each) => each.type === type && each.status === 'True');
const finished = (job: JobLike): JobCondition | undefined =>
  trueCondition(job, 'Complete') ?? trueCondition(job, 'Failed');

/**
 * How a Job has finished; `undefined` while it runs. A Job with FailureTarget has failed although its Pod has not terminated:
 * on a lost node it never does, and the snapshot or schedule would wait for ever.
 */
export function endOf(job: JobLike): JobCondition | undefined {
  const failing = trueCondition(job, 'FailureTarget');
  return finished(job) ?? (failing && { ...failing, type: 'Failed' });
}

/** It has failed, and its Pod may not have terminated yet. */
export const isStopping = (job: JobLike): boolean => endOf(job) !== undefined && !finished(job);

/** Until when the cache may still receive the status of its Pods. */
export const settledAt = (job: JobLike): number =>
  (Date.parse(endOf(job)?.lastTransitionTime ?? '') || 0) + (finished(job) ? POD_SETTLES_MS : POD_STOPS_MS);

/** Of Pods labelled with the Job's name, those that it controls; the oldest first. */
export const podsOf = <P extends Named>(job: JobLike, labelled: readonly P[]): readonly P[] =>
  labelled.filter((pod) => controllerOf(pod)?.uid === job.metadata.uid).toSorted((a, b) => createdAt(a) - createdAt(b));
const createdAt = ({ metadata }: Named): number => Date.parse(metadata.creationTimestamp ?? '');

/** The problem of a Job's Pod, as a suffix of a message; empty when there is none. */
export function troubleSuffix(pod: Pick<Pod, 'metadata' | 'status'> | undefined, container: string): string {
  const trouble = pod && troubleOf(pod, container);
  return trouble === undefined ? '' : `; Pod ${pod?.metadata.name ?? ''}: ${trouble}`;
}
