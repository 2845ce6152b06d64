/** The row of upkeep about the PodDisruptionBudget: node drains must not take the quorum. */
import { quorumOf } from '../../../domain/quorum.ts';
import { refTo } from '../../../runtime/plan.ts';
import { pdb, pdbPatch } from '../build.ts';
import {
  type Contributed,
  desired,
  entriesOf,
  entryOf,
  isDormant,
  isFormed,
  type MemberView,
  type Observed,
  wantsPdb,
} from '../observed.ts';

/** minAvailable is the quorum of the larger of current voters and replicas: if it followed a shrinking cluster, drains could remove the quorum. */
const voters = (o: Observed): number => {
  const isVoter = (m: MemberView): boolean =>
    entriesOf(o) ? entryOf(o, m)?.isLearner === false : m.object.status?.isVoter === true;
  return o.members.filter((m) => isVoter(m) && !isDormant(m)).length;
};
const minAvailable = (o: Observed): number => quorumOf(Math.max(voters(o), desired(o)));

export const correctPdb = (o: Observed): Contributed => {
  if (!isFormed(o)) return undefined;
  const needed = wantsPdb(o.cluster) && voters(o) > 0;
  if (!needed)
    return o.pdb.is === 'ours'
      ? {
          message: wantsPdb(o.cluster)
            ? 'deleting the PodDisruptionBudget: the cluster has no running voters'
            : 'deleting the PodDisruptionBudget: podDisruptionBudget.enabled is false',
          sequences: [[{ do: 'delete', what: refTo('PodDisruptionBudget', o.pdb.object) }]],
        }
      : undefined;
  const built = pdb(o.cluster, minAvailable(o));
  if (o.pdb.is === 'absent')
    return { message: 'creating the PodDisruptionBudget', sequences: [[{ do: 'create', object: built }]] };
  const fields = o.pdb.is === 'ours' ? pdbPatch(o.pdb.object, built) : undefined;
  if (o.pdb.is !== 'ours' || !fields) return undefined;
  return {
    message: 'the PodDisruptionBudget does not match the number of voters',
    sequences: [[{ do: 'patch', to: refTo('PodDisruptionBudget', o.pdb.object), fields }]],
  };
};
