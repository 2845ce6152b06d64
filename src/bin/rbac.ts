/** The permissions (RBAC) of the operator, joined from those that each controller declares. The chart's roles are generated from this. */
import { clusterRbac } from '../controllers/cluster/rbac.ts';
import { defragRbac } from '../controllers/defrag/rbac.ts';
import { defragPolicyRbac } from '../controllers/defrag-policy/rbac.ts';
import { memberRbac } from '../controllers/member/rbac.ts';
import { snapshotRbac } from '../controllers/snapshot/rbac.ts';
import { snapshotScheduleRbac } from '../controllers/snapshot-schedule/rbac.ts';
import { volumeRbac } from '../controllers/volume/rbac.ts';
import type { PolicyRule } from '../gen/kube.ts';
import { eventsRbac, leaseRbac } from '../kube/rbac.ts';

/** One rule per resource, its verbs joined and sorted. */
function joined(rules: readonly PolicyRule[]): readonly PolicyRule[] {
  const verbs = new Map<string, { readonly group: string; readonly resource: string; readonly verbs: Set<string> }>();
  for (const rule of rules)
    for (const group of rule.apiGroups ?? [])
      for (const resource of rule.resources ?? []) {
        const entry = verbs.get(`${group}/${resource}`) ?? { group, resource, verbs: new Set<string>() };
        for (const verb of rule.verbs) entry.verbs.add(verb);
        verbs.set(`${group}/${resource}`, entry);
      }
  return [...verbs.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, rule]) => ({ apiGroups: [rule.group], resources: [rule.resource], verbs: [...rule.verbs].sort() }));
}

/** For a ClusterRole: in every namespace that is watched. */
export const rbac: readonly PolicyRule[] = joined([
  ...clusterRbac,
  ...memberRbac,
  ...volumeRbac,
  ...snapshotRbac,
  ...snapshotScheduleRbac,
  ...defragRbac,
  ...defragPolicyRbac,
  ...eventsRbac,
]);
/** For a Role in the operator's own namespace. */
export const leaderElectionRbac: readonly PolicyRule[] = joined(leaseRbac);
