/** RBAC permissions of the member controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const memberRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  // "manage" is the verb that the chart's policy demands of who writes EtcdMembers: also of an operator in another namespace.
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['list', 'manage', 'patch', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers/status'], verbs: ['patch'] },
  // Required to set blockOwnerDeletion where the admission plugin OwnerReferencesPermissionEnforcement is enabled.
  { apiGroups: [GROUP], resources: ['etcdmembers/finalizers'], verbs: ['update'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  {
    apiGroups: [''],
    resources: ['persistentvolumeclaims'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'],
  },
  // To detect a lost node, and whether a volume was on it.
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get'] },
];
