/** What Kubernetes records about the nodes of Pods and volumes. */
import type { Node } from '../gen/kube.ts';

/** On a PVC: the node that the scheduler chose when the volume was provisioned. A Pod that waits for a lost node has no nodeName. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** A user has tainted it: it is shut down and will not write any more. */
export const isOutOfService = ({ spec }: Node): boolean =>
  spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true;
