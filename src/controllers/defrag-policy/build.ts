/** The EtcdDefrags of a policy. */
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdDefragPolicy } from '../../api/etcd-defrag-policy.ts';
import { API_VERSION, CLUSTER_LABEL, etcdDefragPolicies, POLICY_LABEL, scheduledDefragName } from '../../api/names.ts';
import { identity, ownedBy } from '../../domain/ownership.ts';
import { present } from '../../lib/present.ts';

export function scheduledDefrag(policy: EtcdDefragPolicy, slot: number): EtcdDefrag {
  const { name, namespace } = identity(policy);
  const { clusterRef, rule, ttlSecondsAfterFinished } = policy.spec;
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdDefrag',
    metadata: {
      name: scheduledDefragName(name, slot),
      namespace,
      labels: { [CLUSTER_LABEL]: clusterRef.name ?? '', [POLICY_LABEL]: name },
      ownerReferences: ownedBy(etcdDefragPolicies, policy),
    },
    spec: { clusterRef, ...present({ rule, ttlSecondsAfterFinished }) },
  };
}
