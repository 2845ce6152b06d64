/** The rule about the PodDisruptionBudget: node drains must not take the quorum. */
import { refTo } from '../../../runtime/plan.ts';
import { pdb, pdbPatch } from '../build.ts';
import { quorumOf } from '../disruption.ts';
import { type Decided, desired, isDormant, isFormed, isRefused, type Observed, wantsPdb } from '../observed.ts';

/** Never below what the cluster has or is to have: a floor that follows a shrinking cluster would help it to shrink. */
const voters = (o: Observed): number =>
  o.members.filter((m) => m.object.status?.isVoter === true && !isDormant(m)).length;
const floor = (o: Observed): number => quorumOf(Math.max(voters(o), desired(o)));

export const repairPdb = (o: Observed): Decided => (isRefused(o) ? undefined : correctPdb(o));

export const correctPdb = (o: Observed): Decided => {
  if (!isFormed(o)) return undefined;
  const needed = wantsPdb(o.cluster) && voters(o) > 0;
  if (!needed)
    return o.pdb.is === 'ours'
      ? {
          message: wantsPdb(o.cluster) ? 'nobody votes: there is nothing to protect' : 'the budget is turned off',
          steps: [{ do: 'delete', what: refTo('PodDisruptionBudget', o.pdb.object) }],
        }
      : undefined;
  const built = pdb(o.cluster, floor(o));
  if (o.pdb.is === 'absent')
    return { message: 'node drains must not take the quorum', steps: [{ do: 'create', object: built }] };
  const fields = o.pdb.is === 'ours' ? pdbPatch(o.pdb.object, built) : undefined;
  if (o.pdb.is !== 'ours' || !fields) return undefined;
  return {
    message: 'the budget does not fit the number of voters',
    steps: [{ do: 'patch', to: refTo('PodDisruptionBudget', o.pdb.object), fields }],
  };
};
