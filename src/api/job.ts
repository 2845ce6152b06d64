/** Questions about Jobs that more than one controller asks. */
import type { ObjectMeta } from './meta.ts';
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
export const SETTLE_MS = 15_000;

/** How a Job has ended; `undefined` as long as it runs. */
export const endOf = (job: JobLike): Ending | undefined =>
  job.status?.conditions?.find(({ type, status }) => ['Complete', 'Failed'].includes(type) && status === 'True');

/** Of Pods with its name on their label, those that are the Job's own; the oldest first. */
export const podsOf = <P extends Named>(job: JobLike, labelled: readonly P[]): readonly P[] =>
  labelled.filter((pod) => controllerOf(pod)?.uid === job.metadata.uid).toSorted((a, b) => madeAt(a) - madeAt(b));
const madeAt = ({ metadata }: Named): number => Date.parse(metadata.creationTimestamp ?? '');

/** What is in the way of a Job's Pod, to be said after something else; nothing when nothing is. */
export function troubleWords(pod: PodLike | undefined, container: string): string {
  const trouble = pod && troubleOf(pod, container);
  return trouble === undefined ? '' : `; Pod ${pod?.metadata.name ?? ''}: ${trouble}`;
}
