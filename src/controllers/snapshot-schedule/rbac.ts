/** RBAC permissions of the snapshot schedule controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const snapshotScheduleRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules/status'], verbs: ['patch'] },
  // Required to set blockOwnerDeletion where the admission plugin OwnerReferencesPermissionEnforcement is enabled.
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['create', 'delete', 'get', 'list', 'watch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  // Read by name: those that a destination refers to.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] },
];
