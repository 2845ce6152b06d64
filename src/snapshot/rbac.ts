/** What the controller of EtcdSnapshot may do, and no more. */
import { GROUP } from '../api/names.ts';
import type { PolicyRule } from '../gen/kube.ts';

export const snapshotRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshots/status'], verbs: ['patch'] },
];
