/** RBAC permissions of the EtcdDefragPolicy controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const defragPolicyRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcddefragpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcddefragpolicies/status'], verbs: ['patch'] },
  // Required to set blockOwnerDeletion where the admission plugin OwnerReferencesPermissionEnforcement is enabled.
  { apiGroups: [GROUP], resources: ['etcddefragpolicies/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcddefrags'], verbs: ['create', 'delete', 'get', 'list', 'watch'] },
];
