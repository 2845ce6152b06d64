/** What the controller of EtcdDefragPolicy may do, and no more. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const defragPolicyRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcddefragpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcddefragpolicies/status'], verbs: ['patch'] },
];
