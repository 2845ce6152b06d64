/** What the cluster controller may do, and no more. */
import { CERT_MANAGER_GROUP, GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const clusterRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdclusters/status'], verbs: ['patch'] },
  // Asked of whoever sets blockOwnerDeletion where OwnerReferencesPermissionEnforcement is on.
  { apiGroups: [GROUP], resources: ['etcdclusters/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['create', 'delete', 'list', 'patch', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['services'], verbs: ['create', 'get', 'list', 'patch', 'watch'] },
  // By name only: those that a spec names, and those that were made for it.
  { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'delete', 'get', 'patch'] },
  {
    apiGroups: [CERT_MANAGER_GROUP],
    resources: ['certificates'],
    verbs: ['create', 'get', 'list', 'patch', 'watch'],
  },
  // By name: why one is not issued.
  { apiGroups: [CERT_MANAGER_GROUP], resources: ['certificaterequests'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['delete', 'list', 'patch', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['delete', 'list', 'watch'] },
  // How old the newest backup is.
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['policy'],
    resources: ['poddisruptionbudgets'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'],
  },
];
