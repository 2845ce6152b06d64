/** `leave`, `remove-member` and `add-member`: changes behind the operator's back, for Pods without one and for emergencies. */
import { hexId, idOf } from '../../etcd/ids.ts';
import { type ActFlags, isAgreed, requireForce } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { expected, type Reached } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { LONG_MS, listMembers } from './members.ts';

type Flags = ActFlags & TargetFlags & { readonly cluster?: string };

export const leave = (context: Context, flags: Flags): Promise<number> =>
  onTarget(context, undefined, flags, async (target) => {
    requireForce(target.cluster !== undefined, flags);
    const { from, members } = await listMembers(target);
    const own = members.find(({ name }) => name === flags.pod);
    if (!own) {
      context.note(`${flags.pod ?? ''} is not a member`);
      return 0;
    }
    return remove(context, target, from, own.id, flags);
  });

export const removeMember = (context: Context, id: string, flags: Flags): Promise<number> =>
  onTarget(context, flags.cluster, flags, async (target) => {
    if (!/^[0-9a-f]{1,16}$/i.test(id))
      throw new UserError(`${JSON.stringify(id)} is not the hexadecimal id of a member: see kubectl etcd members`);
    requireForce(target.cluster !== undefined, flags);
    const { from } = await listMembers(target);
    return remove(context, target, from, idOf(id), flags);
  });

async function remove(context: Context, target: Target, from: Reached, id: bigint, flags: Flags): Promise<number> {
  const { session } = target;
  if (!(await isAgreed(context, `remove member ${hexId(id)} from etcd`, flags))) return 0;
  expected(from, await session.etcd.members.remove(session.ask(from, LONG_MS), id));
  return 0;
}

export const addMember = (context: Context, peerURL: string, flags: Flags): Promise<number> =>
  onTarget(context, flags.cluster, flags, async (target) => {
    requireForce(target.cluster !== undefined, flags);
    const { session } = target;
    const { from } = await listMembers(target);
    if (!(await isAgreed(context, `add a voter with the peer URL ${peerURL}`, flags))) return 0;
    const ask = session.ask(from, LONG_MS);
    const { added } = expected(from, await session.etcd.members.add(ask, [peerURL], { learner: false }));
    context.print(`Member successfully added: ${hexId(added.id)}`);
    return 0;
  });
