/** Which members etcd counts as voters, copied to `status.isVoter`: the client Service selects its Pods by it. */
import { refTo, type Step } from '../../runtime/plan.ts';
import { entriesOf, entryOf, isNotBeingDeleted, type MemberView, type Observed } from './observed.ts';

export const voterPatch = ({ object }: MemberView, isVoter: boolean): Step => ({
  do: 'patch',
  to: refTo('EtcdMember', object),
  subresource: 'status',
  fields: { status: { isVoter } },
});

export function voterSteps(o: Observed): readonly Step[] {
  if (!entriesOf(o)) return [];
  return o.members.flatMap((m): readonly Step[] => {
    const entry = entryOf(o, m);
    const isVoter = entry?.isLearner === false;
    // A member that etcd does not list keeps its isVoter: deleteRemovedMember needs it to judge whether the list is plausible.
    if ((!entry && isNotBeingDeleted(m)) || (m.object.status?.isVoter ?? false) === isVoter) return [];
    return [voterPatch(m, isVoter)];
  });
}
