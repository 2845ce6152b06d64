/** The permissions (RBAC) of the cluster controller. */
import { CERT_MANAGER_GROUP, GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const clusterRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdclusters/status'], verbs: ['patch'] },
  // Needed to set blockOwnerDeletion where the admission plugin OwnerReferencesPermissionEnforcement is enabled.
  { apiGroups: [GROUP], resources: ['etcdclusters/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdmembers'], verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdmembers/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['services'], verbs: ['create', 'get', 'list', 'patch', 'watch'] },
  // Read by name only: Secrets that a spec names, and managed Secrets.
  { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'delete', 'get', 'patch'] },
  {
    apiGroups: [CERT_MANAGER_GROUP],
    resources: ['certificates'],
    verbs: ['create', 'get', 'list', 'patch', 'watch'],
  },
  // Read by name: why a Certificate is not issued.
  { apiGroups: [CERT_MANAGER_GROUP], resources: ['certificaterequests'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['delete', 'list', 'patch', 'watch'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['delete', 'list', 'watch'] },
  // A snapshot before the minor of etcd is changed.
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['create', 'list', 'watch'] },
  // The age of the newest backup.
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules'], verbs: ['list', 'watch'] },
  // What defragmentations are asked for, and what has come of them; the members that snapshots stream from.
  { apiGroups: [GROUP], resources: ['etcddefrags', 'etcdsnapshots'], verbs: ['list', 'watch'] },
  // A defragmentation of databases that have reached their quota.
  { apiGroups: [GROUP], resources: ['etcddefrags'], verbs: ['create'] },
  { apiGroups: [GROUP], resources: ['etcddefrags/status'], verbs: ['patch'] },
  {
    apiGroups: ['networking.k8s.io'],
    resources: ['networkpolicies'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'],
  },
  {
    apiGroups: ['policy'],
    resources: ['poddisruptionbudgets'],
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'watch'],
  },
];
