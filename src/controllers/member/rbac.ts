/** What the member controller may do, and no more. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const memberRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['list', 'patch', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers/status'], verbs: ['patch'] },
  // Asked of whoever sets blockOwnerDeletion where OwnerReferencesPermissionEnforcement is on.
  { apiGroups: [GROUP], resources: ['etcdmembers/finalizers'], verbs: ['update'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'get', 'list', 'patch', 'watch'] },
  // A lost node, and whether a volume was on it.
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get'] },
];
