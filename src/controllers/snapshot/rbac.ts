/** What the controller of EtcdSnapshot may do, and no more. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const snapshotRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshots/status'], verbs: ['patch'] },
  // Asked of whoever sets blockOwnerDeletion where OwnerReferencesPermissionEnforcement is on.
  { apiGroups: [GROUP], resources: ['etcdsnapshots/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['list', 'watch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  // By name: those that a spec names, and whether they are there.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get'] },
];
