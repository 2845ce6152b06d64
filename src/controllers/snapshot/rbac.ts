/** RBAC permissions of the snapshot controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const snapshotRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshots/status'], verbs: ['patch'] },
  // Required to set blockOwnerDeletion where the admission plugin OwnerReferencesPermissionEnforcement is enabled.
  { apiGroups: [GROUP], resources: ['etcdsnapshots/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['list', 'watch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  // Read by name: those that a spec refers to, and whether they exist.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] },
];
