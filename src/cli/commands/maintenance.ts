/** `defrag`, `compact` and `alarm`: on all members of a cluster, or on one Pod. */
import { hexId } from '../../etcd/ids.ts';
import type { AlarmEntry } from '../../etcd/maintenance.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { expected, type Reached } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { bytes } from '../render/units.ts';
import { LONG_MS, listMembers } from './members.ts';

/** A member rewrites its database meanwhile, and serves nothing. */
const DEFRAG_MS = 120_000;

type Flags = ActFlags & TargetFlags;

const statusOf = async ({ session }: Target, member: Reached) =>
  expected(member, await session.etcd.status(session.ask(member, LONG_MS)));

/** From here, one member after the other, the leader last: an election for each of them would interrupt clients. */
export const defragDirectly = (context: Context, cluster: string | undefined, flags: Flags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const order = target.pod === undefined ? await leaderLast(target) : target.session.reached;
    const names = order.map(({ name }) => name).join(', then ');
    if (!(await isAgreed(context, `defragment ${names}; each serves nothing meanwhile`, flags))) return 0;
    for (const member of order) {
      // The next member stops serving too: all others must serve again.
      if (target.pod === undefined) await leaderLast(target);
      const before = await statusOf(target, member);
      expected(member, await target.session.etcd.maintenance.defragment(target.session.ask(member, DEFRAG_MS)));
      const after = await statusOf(target, member);
      context.note(`${member.name}: ${bytes(before.dbSize)} before, ${bytes(after.dbSize)} now`);
    }
    return 0;
  });

/** Refuses when a member that etcd lists does not respond, or has no leader. */
async function leaderLast(target: Target): Promise<readonly Reached[]> {
  const list = await listMembers(target);
  const states = await Promise.all(
    target.session.reached.map(async (member) => ({ member, ...(await statusOf(target, member)) })),
  );
  const missing = list.members.filter(
    ({ id }) => !states.some(({ memberId, leader }) => memberId === id && leader !== 0n),
  );
  if (missing.length > 0)
    throw new UserError(
      `${missing.map(({ id, name }) => name || hexId(id)).join(', ')} is not healthy, and another member would stop serving: repair it first, or defragment one Pod with -p`,
    );
  const isLeader = ({ memberId, leader }: (typeof states)[number]): number => (memberId === leader ? 1 : 0);
  return states.toSorted((a, b) => isLeader(a) - isLeader(b)).map(({ member }) => member);
}

export const compact = (context: Context, cluster: string | undefined, flags: Flags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const { from } = await listMembers(target);
    const { revision } = await statusOf(target, from);
    const plan = `compact all revisions before ${revision}; watches and reads at earlier revisions fail after that`;
    if (!(await isAgreed(context, plan, flags))) return 0;
    const { session } = target;
    const done = await session.etcd.kv.compact(session.ask(from, DEFRAG_MS), revision, { physical: true });
    if (!done.ok && done.error.kind === 'compacted') context.note(`revision ${revision} was compacted before`);
    else {
      expected(from, done);
      context.note(`compacted up to revision ${revision}; defrag gives the space back to the file system`);
    }
    return 0;
  });

const alarmText = ({ alarm, memberId }: AlarmEntry): string =>
  `Alarm: ${alarm.toUpperCase()}, MemberID: ${hexId(memberId)}`;

async function alarmsOf({ session }: Target, from: Reached): Promise<readonly AlarmEntry[]> {
  return expected(from, await session.etcd.maintenance.alarms(session.ask(from, LONG_MS)));
}

export const alarmList = (context: Context, cluster: string | undefined, flags: TargetFlags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const { from } = await listMembers(target);
    const found = await alarmsOf(target, from);
    for (const alarm of found) context.print(alarmText(alarm));
    if (found.length === 0) context.note('no alarm is active');
    return 0;
  });

export const alarmDisarm = (context: Context, cluster: string | undefined, flags: Flags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const { from } = await listMembers(target);
    const { session } = target;
    const active = await alarmsOf(target, from);
    if (active.length === 0) {
      context.note('no alarm is active');
      return 0;
    }
    const plan = `disarm ${active.map(({ alarm, memberId }) => `${alarm.toUpperCase()} of ${hexId(memberId)}`).join(', ')}`;
    if (!(await isAgreed(context, plan, flags))) return 0;
    for (const alarm of active)
      expected(from, await session.etcd.maintenance.disarm(session.ask(from, LONG_MS), alarm));
    return 0;
  });
