/** The observed state of one PVC that outlived its member and its cluster. */
import type { PersistentVolumeClaim } from '../../gen/kube.ts';

export interface Observed {
  readonly now: number;
  readonly pvc: PersistentVolumeClaim;
  /** Its EtcdMember still exists. */
  readonly hasMember: boolean;
  /** Its EtcdCluster, or another one of that name, exists. */
  readonly hasCluster: boolean;
}
