/** How many members a restart may take away. */
import type { OnWrite } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { groupOf, hasQuorum, isClusterDeleted, isReachable } from './world/facts.ts';

/**
 * Never a second voter away: the operator deletes the Pod of no voter that serves while another one does not. Of one whose
 * certificates have expired, the operator cannot tell.
 */
export const oneVoterAway: OnWrite = (scene, { verb, resource, ref }) => {
  const { world, history } = scene;
  if (verb !== 'delete' || resource.kind !== 'Pod' || isClusterDeleted(world)) return undefined;
  const { spec, status } = world.cluster ?? {};
  if (spec?.replicas === 0 || status?.observed?.replicas === 0) return undefined; // all of them are stopped
  const group = groupOf(world);
  const run = [...world.kubelet.runs.values()].find(({ name }) => name === ref.name);
  const id = run?.process?.disk?.id;
  if (!group || id === undefined || world.credentials || !hasQuorum(world, group)) return undefined;
  if (group.members.get(id)?.isLearner !== false || !isReachable(world, group, id)) return undefined;
  const away = voters(group).find((voter) => voter.id !== id && !history.wasReachableLately(voter.id));
  return away && `Pod ${ref.name} is deleted while ${away.name} does not serve`;
};
