/** RBAC permissions of the volume controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const volumeRbac: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['delete', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdclusters', 'etcdmembers'], verbs: ['list', 'watch'] },
];
