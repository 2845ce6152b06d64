/** Whether the rollout of the present spec has failed. */
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';

export type Rollout = NonNullable<EtcdClusterStatus['rollout']>;
interface OfCluster {
  readonly cluster: EtcdCluster;
}

/** The last value of the annotation by which a user requests a restart of every member. */
export const restartRequest = ({ cluster }: OfCluster): string | undefined =>
  cluster.metadata.annotations?.[RESTARTED_AT_ANNOTATION];

/** A member did not become ready with the present spec: the rollout has stopped. */
export function failedRollout(o: OfCluster): Rollout['failed'] {
  const { failed } = o.cluster.status?.rollout ?? {};
  return failed && failed.restartedAt === restartRequest(o) ? failed : undefined;
}
