/** RBAC permissions of the EtcdDefrag controller. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const defragRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcddefrags'], verbs: ['delete', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcddefrags/status'], verbs: ['patch'] },
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['get', 'list', 'watch'] },
];
