/** Questions about Jobs that more than one controller asks. */
import type { ObjectMeta } from '../api/meta.ts';
import { controllerOf } from './ownership.ts';
import { troubleOf } from './pod.ts';

interface Named {
  readonly metadata: ObjectMeta;
}
interface Ending {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}
interface JobLike extends Named {
  readonly status?: { readonly conditions?: readonly Ending[] };
}
type PodLike = Named & Parameters<typeof troubleOf>[0];

/** The status of a Pod may be heard of after that of its Job. */
const SETTLE_MS = 15_000;
/** A Pod that is told to end has half of it, and may still tell what it has done. */
const STOP_MS = 60_000;

const said = (job: JobLike, type: string): Ending | undefined =>
  job.status?.conditions?.find((each) => each.type === type && each.status === 'True');
const over = (job: JobLike): Ending | undefined => said(job, 'Complete') ?? said(job, 'Failed');

/**
 * How a Job has ended; `undefined` as long as it runs. One that Kubernetes has given up has failed, also while its Pod has not
 * ended: on a node that is gone it never does, and nothing would ever follow on it.
 */
export function endOf(job: JobLike): Ending | undefined {
  const givenUp = said(job, 'FailureTarget');
  return over(job) ?? (givenUp && { ...givenUp, type: 'Failed' });
}

/** It has been given up, and its Pod may not have ended yet. */
export const isStopping = (job: JobLike): boolean => endOf(job) !== undefined && !over(job);

/** Until when its Pods may still be heard of. */
export const settledAt = (job: JobLike): number =>
  (Date.parse(endOf(job)?.lastTransitionTime ?? '') || 0) + (over(job) ? SETTLE_MS : STOP_MS);

/** Of Pods with its name on their label, those that are the Job's own; the oldest first. */
export const podsOf = <P extends Named>(job: JobLike, labelled: readonly P[]): readonly P[] =>
  labelled.filter((pod) => controllerOf(pod)?.uid === job.metadata.uid).toSorted((a, b) => madeAt(a) - madeAt(b));
const madeAt = ({ metadata }: Named): number => Date.parse(metadata.creationTimestamp ?? '');

/** What is in the way of a Job's Pod, to be said after something else; nothing when nothing is. */
export function troubleSuffix(pod: PodLike | undefined, container: string): string {
  const trouble = pod && troubleOf(pod, container);
  return trouble === undefined ? '' : `; Pod ${pod?.metadata.name ?? ''}: ${trouble}`;
}
