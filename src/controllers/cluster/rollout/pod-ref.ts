/** The Pod of a member as the target of a step. */
import type { ObjectRef } from '../../../runtime/plan.ts';
import type { MemberView } from '../observed.ts';

export function podOf(m: MemberView): ObjectRef {
  const { namespace = '', name = '' } = m.object.metadata;
  return { kind: 'Pod', namespace, name, uid: (m.pod.is === 'present' && m.pod.uid) || '' };
}
