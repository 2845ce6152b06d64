/** `kubectl etcd members`, and `status` of one Pod: the tables of etcd's own view. */
import { hexId } from '../../etcd/ids.ts';
import type { MemberEntry, Membership } from '../../etcd/members.ts';
import { type Context, UserError } from '../context.ts';
import { expected, type Reached } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { printRows } from '../output.ts';
import { type Columns, table, widthOf } from '../render/table.ts';
import { bytes, percent } from '../render/units.ts';

export const LONG_MS = 30_000;

/** Of a member that can be asked; the first that responds. */
export async function listMembers({ session }: Target): Promise<{ readonly from: Reached } & Membership> {
  let failed: unknown;
  for (const from of session.reached) {
    try {
      const list = await session.etcd.memberList({ ...session.ask(from, LONG_MS), linearizable: true });
      return { from, ...expected(from, list) };
    } catch (error) {
      failed = error;
    }
  }
  throw failed instanceof Error ? failed : new UserError('no member can be asked');
}

const COLUMNS: Columns<Omit<MemberEntry, 'id'> & { readonly id: string }> = [
  { head: 'ID', cell: ({ id }) => id },
  { head: 'HOSTNAME', cell: ({ name }) => name },
  { head: 'PEER URLS', cell: ({ peerURLs }) => peerURLs.join(',') },
  { head: 'CLIENT URLS', cell: ({ clientURLs }) => clientURLs.join(',') },
  { head: 'LEARNER', cell: ({ isLearner }) => String(isLearner) },
];

type MembersFlags = TargetFlags & { readonly output?: string };

export const members = (context: Context, cluster: string | undefined, flags: MembersFlags): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const found = await listMembers(target);
    // Hexadecimal: a script compares ids with those of etcdctl and of EtcdMembers.
    const rows = found.members.map(({ id, ...member }) => ({ id: hexId(id), ...member }));
    // Scripts of the Go operator's plugin read all columns; a terminal shows those that fit.
    const narrow = COLUMNS.filter((column) => column !== false && column.head !== 'CLIENT URLS');
    const fits =
      !context.isTerminal || widthOf(table({ ...context.paper, colour: false }, COLUMNS, rows)) <= context.paper.width;
    const columns = (wide: boolean) => (wide || fits ? COLUMNS : narrow);
    await printRows(context, flags.output, rows, columns, 'etcd lists no member');
    return 0;
  });

export const podStatus = (context: Context, flags: TargetFlags): Promise<number> =>
  onTarget(context, undefined, flags, async ({ session }) => {
    const rows = await Promise.all(
      session.reached.map(async (member) => {
        const answer = await session.etcd.status(session.ask(member, LONG_MS));
        return expected(member, answer);
      }),
    );
    type Row = (typeof rows)[number];
    const columns: Columns<Row> = [
      { head: 'MEMBER', cell: ({ memberId }) => hexId(memberId) },
      { head: 'DB SIZE', cell: ({ dbSize }) => bytes(dbSize), right: true },
      {
        head: 'IN USE',
        cell: ({ dbSize, dbSizeInUse }) => `${bytes(dbSizeInUse)} (${percent(dbSizeInUse, dbSize)})`,
        right: true,
      },
      { head: 'LEADER', cell: ({ leader }) => hexId(leader) },
      { head: 'RAFT INDEX', cell: ({ raftIndex }) => String(raftIndex), right: true },
      { head: 'RAFT APPLIED INDEX', cell: ({ raftAppliedIndex }) => String(raftAppliedIndex), right: true },
      { head: 'LEARNER', cell: ({ isLearner }) => String(isLearner) },
      {
        head: 'ERRORS',
        cell: ({ alarms }) => alarms.map(({ alarm, memberId }) => `${alarm} of ${hexId(memberId)}`).join(', ') || '-',
      },
    ];
    context.print(table(context.paper, columns, rows).join('\n'));
    return 0;
  });
