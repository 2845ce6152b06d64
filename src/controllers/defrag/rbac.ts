/** What the controller of EtcdDefrag may do, and no more. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const defragRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcddefrags'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcddefrags/status'], verbs: ['patch'] },
];
