/** RBAC rules that every controller needs: to record Events, and to hold the leader election Lease. */
import type { PolicyRule } from '../gen/kube.ts';

export const eventsRbac: readonly PolicyRule[] = [
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];

/** In the operator's own namespace. */
export const leaseRbac: readonly PolicyRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'patch'] },
];
