/** RBAC permissions of the EtcdDefrag and EtcdDefragPolicy controllers. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const defragRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcddefrags', 'etcddefragpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcddefrags/status', 'etcddefragpolicies/status'], verbs: ['patch'] },
];
