/** The rule about the PodDisruptionBudget: node drains must not take the quorum. */
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type Answer, seen } from '../../../runtime/plan.ts';
import { budget, budgetPatch } from '../build.ts';
import { quorumOf } from '../disruption.ts';
import { desired, isDormant, isFormed, isRefused, type Observed, wantsBudget } from '../observed.ts';

/** Never below what the cluster has or is to have: a floor that follows a shrinking cluster would help it to shrink. */
const voters = (o: Observed): number =>
  o.members.filter((m) => m.object.status?.isVoter === true && !isDormant(m)).length;
const floor = (o: Observed): number => quorumOf(Math.max(voters(o), desired(o)));

export const repairBudget = (o: Observed): Answer<EtcdClusterStatus> | undefined =>
  isRefused(o) ? undefined : correctBudget(o);

export const correctBudget = (o: Observed): Answer<EtcdClusterStatus> | undefined => {
  if (!isFormed(o)) return undefined;
  const needed = wantsBudget(o.cluster) && voters(o) > 0;
  if (!needed)
    return o.budget.is === 'ours'
      ? {
          why: wantsBudget(o.cluster) ? 'nobody votes: there is nothing to protect' : 'the budget is turned off',
          steps: [{ do: 'delete', what: seen('PodDisruptionBudget', o.budget.object) }],
        }
      : undefined;
  const built = budget(o.cluster, floor(o));
  if (o.budget.is === 'absent')
    return { why: 'node drains must not take the quorum', steps: [{ do: 'create', object: built }] };
  const fields = o.budget.is === 'ours' ? budgetPatch(o.budget.object, built) : undefined;
  if (o.budget.is !== 'ours' || !fields) return undefined;
  return {
    why: 'the budget does not fit the number of voters',
    steps: [{ do: 'patch', to: seen('PodDisruptionBudget', o.budget.object), fields }],
  };
};
