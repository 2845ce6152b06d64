/** `move-leader` of a cluster, and `forfeit-leadership` of one Pod. */
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { expected } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { LONG_MS, listMembers } from './members.ts';

type Flags = ActFlags & TargetFlags & { readonly to?: string };

export const moveLeader = (context: Context, cluster: string | undefined, flags: Flags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const { session } = target;
    const { members } = await listMembers(target);
    const states = await statesOf(target);
    const leader = states.find(({ memberId, leader: of }) => memberId === of);
    if (!leader) throw new UserError('no member that was asked is the leader');
    const voters = members.filter(({ id, isLearner, name }) => !isLearner && id !== leader.memberId && name !== '');
    const caughtUp = new Map(states.map(({ memberId, raftAppliedIndex }) => [memberId, raftAppliedIndex]));
    const best = voters.toSorted((a, b) => Number((caughtUp.get(b.id) ?? -1n) - (caughtUp.get(a.id) ?? -1n)))[0];
    const transferee = flags.to === undefined ? best : voters.find(({ name }) => name === flags.to);
    if (!transferee)
      throw new UserError(
        flags.to === undefined ? 'there is no other voter' : `${flags.to} is not a voter, or is the leader already`,
      );
    const plan = `move the leader from ${leader.member.name} to ${transferee.name}`;
    if (!(await isAgreed(context, plan, flags))) return 0;
    const ask = session.ask(leader.member, LONG_MS);
    expected(leader.member, await session.etcd.maintenance.moveLeader(ask, transferee.id));
    context.note(`${transferee.name} is the leader now`);
    return 0;
  });

/** Members that do not respond are left out: they are not the leader. */
async function statesOf({ session }: Target) {
  const asked = await Promise.all(
    session.reached.map(async (member) => ({ member, answer: await session.etcd.status(session.ask(member)) })),
  );
  return asked.flatMap(({ member, answer }) => (answer.ok ? [{ member, ...answer.value }] : []));
}

export const forfeitLeadership = (context: Context, flags: Flags): Promise<number> =>
  onTarget(context, undefined, flags, async (target) => {
    const { session } = target;
    const { from, members } = await listMembers(target);
    const { memberId, leader } = expected(from, await session.etcd.status(session.ask(from, LONG_MS)));
    if (memberId !== leader) {
      context.note(`${from.name} is not the leader`);
      return 0;
    }
    const transferee = members.find(({ id, isLearner }) => id !== leader && !isLearner);
    if (!transferee) {
      context.note('there is no other voter that could be the leader');
      return 0;
    }
    if (!(await isAgreed(context, `move the leader to ${transferee.name}`, flags))) return 0;
    expected(from, await session.etcd.maintenance.moveLeader(session.ask(from, LONG_MS), transferee.id));
    return 0;
  });
