/** The rule about the PodDisruptionBudget: node drains must not take the quorum. */
import { quorumOf } from '../../../domain/quorum.ts';
import { refTo } from '../../../runtime/plan.ts';
import { pdb, pdbPatch } from '../build.ts';
import { type Decided, desired, isDormant, isFormed, isRefused, type Observed, wantsPdb } from '../observed.ts';

/** minAvailable is the quorum of the larger of current voters and replicas: if it followed a shrinking cluster, drains could remove the quorum. */
const voters = (o: Observed): number =>
  o.members.filter((m) => m.object.status?.isVoter === true && !isDormant(m)).length;
const minAvailable = (o: Observed): number => quorumOf(Math.max(voters(o), desired(o)));

export const repairPdb = (o: Observed): Decided => (isRefused(o) ? undefined : correctPdb(o));

export const correctPdb = (o: Observed): Decided => {
  if (!isFormed(o)) return undefined;
  const needed = wantsPdb(o.cluster) && voters(o) > 0;
  if (!needed)
    return o.pdb.is === 'ours'
      ? {
          message: wantsPdb(o.cluster)
            ? 'deleting the PodDisruptionBudget: the cluster has no running voters'
            : 'deleting the PodDisruptionBudget: podDisruptionBudget.enabled is false',
          steps: [{ do: 'delete', what: refTo('PodDisruptionBudget', o.pdb.object) }],
        }
      : undefined;
  const built = pdb(o.cluster, minAvailable(o));
  if (o.pdb.is === 'absent')
    return { message: 'creating the PodDisruptionBudget', steps: [{ do: 'create', object: built }] };
  const fields = o.pdb.is === 'ours' ? pdbPatch(o.pdb.object, built) : undefined;
  if (o.pdb.is !== 'ours' || !fields) return undefined;
  return {
    message: 'the PodDisruptionBudget does not match the number of voters',
    steps: [{ do: 'patch', to: refTo('PodDisruptionBudget', o.pdb.object), fields }],
  };
};
