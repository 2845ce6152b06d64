/** What Kubernetes records about the nodes of Pods and volumes. */
import type { Node } from '../gen/kube.ts';

/** On a PVC: the node that the scheduler chose when the volume was provisioned. A Pod that waits for a lost node has no nodeName. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

export const ZONE_LABEL = 'topology.kubernetes.io/zone';

/** The Cluster Autoscaler and Karpenter taint a node before they drain and delete it. */
const ABOUT_TO_BE_DRAINED = ['ToBeDeletedByClusterAutoscaler', 'karpenter.sh/disrupted'];

/** It takes no new Pods, and those that it has are mostly evicted next: `kubectl drain` cordons a node first. */
export const isCordoned = ({ spec }: Node): boolean =>
  spec?.unschedulable === true || spec?.taints?.some(({ key }) => ABOUT_TO_BE_DRAINED.includes(key)) === true;

/** Its Ready condition, with the time of the last change. */
export function readinessOf({ status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return `${ready?.status} since ${ready?.lastTransitionTime}`;
}

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** A user has tainted it: it is shut down and will not write any more. */
export const isOutOfService = ({ spec }: Node): boolean =>
  spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true;
