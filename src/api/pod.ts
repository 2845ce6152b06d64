/** Questions about Pods that more than one controller asks. */

interface PodLike {
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
  };
}

export const isPodReady = (pod: PodLike): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** Finished for good: Kubernetes never starts the containers of such a Pod again. */
export const isPodOver = (pod: PodLike): boolean => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
