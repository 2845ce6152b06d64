/** What must never happen while members are added. */
import type { OnChange } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { groupOf } from './world/facts.ts';

/** Never more members than wanted: one in addition for a member that loses its data. */
export const noMoreThanWanted: OnChange = ({ world }, { method }, answer) => {
  const group = groupOf(world);
  if (!answer?.ok || !group || method !== 'add') return undefined;
  const { spec, status } = world.cluster ?? {};
  const wanted = Math.max(spec?.replicas ?? 0, status?.observed?.replicas ?? 0, voters(group).length) + 1;
  return group.members.size <= wanted
    ? undefined
    : `etcd has ${group.members.size} members, ${wanted} at most are wanted`;
};
