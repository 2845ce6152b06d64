/** Predicates about Pods that several controllers share. */
import type { Pod } from '../gen/kube.ts';

type PodLike = Pick<Pod, 'status'> & Partial<Pick<Pod, 'metadata'>>;

export const isPodReady = (pod: PodLike): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** Terminated: the kubelet never starts the containers of such a Pod again. */
export const isPodOver = (pod: PodLike): boolean => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';

/** Why a Pod is not running, in the words of the scheduler, the kubelet or the container runtime. */
export function troubleOf(pod: PodLike, container: string): string | undefined {
  if (pod.metadata?.deletionTimestamp !== undefined) return 'the Pod is being deleted';
  const unscheduled = pod.status?.conditions?.find((c) => c.type === 'PodScheduled' && c.status === 'False');
  if (unscheduled) return `not scheduled: ${unscheduled.message ?? unscheduled.reason ?? 'no reason given'}`;
  const state = pod.status?.containerStatuses?.find((c) => c.name === container)?.state;
  if (state?.waiting)
    return `${container} is waiting: ${[state.waiting.reason, state.waiting.message].filter(Boolean).join(': ')}`;
  if (state?.terminated)
    return `${container} terminated: ${state.terminated.reason ?? ''} (exit code ${state.terminated.exitCode})`;
  return undefined;
}
