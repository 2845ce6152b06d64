/** What the controller of EtcdSnapshotSchedule may do, and no more. */
import { GROUP } from '../../api/names.ts';
import type { PolicyRule } from '../../gen/kube.ts';

export const snapshotScheduleRbac: readonly PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules/status'], verbs: ['patch'] },
  // Asked of whoever sets blockOwnerDeletion where OwnerReferencesPermissionEnforcement is on.
  { apiGroups: [GROUP], resources: ['etcdsnapshotschedules/finalizers'], verbs: ['update'] },
  { apiGroups: [GROUP], resources: ['etcdclusters'], verbs: ['list', 'watch'] },
  { apiGroups: [GROUP], resources: ['etcdsnapshots'], verbs: ['create', 'delete', 'get', 'list', 'watch'] },
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'list', 'watch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
];
