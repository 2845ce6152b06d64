/** Questions about Pods that more than one controller asks. */

interface Told {
  readonly reason?: string;
  readonly message?: string;
}

interface PodLike {
  readonly metadata?: { readonly deletionTimestamp?: string };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly ({ readonly type: string; readonly status: string } & Told)[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly state?: { readonly waiting?: Told; readonly terminated?: Told & { readonly exitCode: number } };
    }[];
  };
}

export const isPodReady = (pod: PodLike): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** Finished for good: Kubernetes never starts the containers of such a Pod again. */
export const isPodOver = (pod: PodLike): boolean => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';

/** Why a Pod does not get on, in the words of whoever is in the way: scheduler, kubelet, image, container. */
export function troubleOf(pod: PodLike, container: string): string | undefined {
  if (pod.metadata?.deletionTimestamp !== undefined) return 'the Pod is being deleted';
  const unscheduled = pod.status?.conditions?.find((c) => c.type === 'PodScheduled' && c.status === 'False');
  if (unscheduled) return `not scheduled: ${unscheduled.message ?? unscheduled.reason ?? 'no reason given'}`;
  const state = pod.status?.containerStatuses?.find((c) => c.name === container)?.state;
  if (state?.waiting)
    return `${container} is waiting: ${[state.waiting.reason, state.waiting.message].filter(Boolean).join(': ')}`;
  if (state?.terminated)
    return `${container} ended: ${state.terminated.reason ?? ''} (exit code ${state.terminated.exitCode})`;
  return undefined;
}
