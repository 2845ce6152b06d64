/** Which members etcd counts as voters, copied to `status.isVoter`: the client Service selects its Pods by it. */
import { refTo, type Step } from '../../runtime/plan.ts';
import { entriesOf, entryOf, isNotBeingDeleted, type Observed } from './observed.ts';

export function voterSteps(o: Observed): readonly Step[] {
  if (!entriesOf(o)) return [];
  return o.members.flatMap((m): readonly Step[] => {
    const entry = entryOf(o, m);
    const isVoter = entry?.isLearner === false;
    // A member that etcd does not list keeps its isVoter: deleteRemovedMember needs it to judge whether the list is plausible.
    if ((!entry && isNotBeingDeleted(m)) || (m.object.status?.isVoter ?? false) === isVoter) return [];
    return [{ do: 'patch', to: refTo('EtcdMember', m.object), subresource: 'status', fields: { status: { isVoter } } }];
  });
}
