/** `kubectl etcd hashkv`: compares the data of the members. */
import { hexId } from '../../etcd/ids.ts';
import { compareHashes, type HashRow } from '../assess/hashes.ts';
import type { Context } from '../context.ts';
import { causeOf, type Session } from '../gather/session.ts';
import { onTarget, type TargetFlags } from '../gather/target.ts';
import { formatOf, structured } from '../output.ts';
import { type Columns, table } from '../render/table.ts';

export interface HashFlags extends TargetFlags {
  readonly output?: string;
  readonly check?: boolean;
}

/** Hashing reads the whole database. */
const HASH_MS = 120_000;
const DIFFERENT = 2;

const COLUMNS: Columns<HashRow> = [
  { head: 'MEMBER', cell: ({ name }) => name },
  { head: 'HASH', cell: ({ hash }) => hash ?? '' },
  { head: 'REVISION', cell: ({ revision }) => (revision === undefined ? '' : String(revision)), right: true },
  {
    head: 'COMPACTED',
    cell: ({ compactRevision: at = -1 }) => (at < 0 ? '' : String(at)), // -1: nothing was compacted yet
    right: true,
  },
  { head: 'PROBLEM', cell: ({ problem }) => ({ text: problem ?? '', tone: 'warn' }) },
];

export const hashkv = (context: Context, cluster: string | undefined, flags: HashFlags): Promise<number> =>
  onTarget(context, cluster, flags, async ({ session, pod }) => {
    const format = formatOf(flags.output);
    const states = await Promise.all(
      session.reached.map(async (member) => ({ member, answer: await session.etcd.status(session.ask(member)) })),
    );
    // The newest revision that all of them have: writes go on while they are asked.
    const revisions = states.flatMap(({ answer }) => (answer.ok ? [answer.value.revision] : []));
    const revision = revisions.reduce((least, each) => (each < least ? each : least), revisions[0] ?? 0n);
    const rows = await Promise.all(
      states.map(async ({ member, answer }): Promise<HashRow> => {
        const { name } = member;
        if (!answer.ok) return { name, problem: causeOf(member, answer.error.message) };
        const hashed = await session.etcd.maintenance.hashKV(session.ask(member, HASH_MS), revision);
        if (!hashed.ok) return { name, problem: causeOf(member, hashed.error.message) };
        return {
          name,
          hash: (hashed.value.hash >>> 0).toString(16).padStart(8, '0'),
          revision: Number(revision),
          compactRevision: Number(hashed.value.compactRevision),
        };
      }),
    );
    if (pod === undefined) rows.push(...(await withoutPod(session, rows)));
    const verdict = compareHashes(rows, pod === undefined);
    if (format === 'json' || format === 'yaml') context.print(await structured(format, { ...verdict, members: rows }));
    else context.print([...table(context.paper, COLUMNS, rows), '', verdict.message].join('\n'));
    return flags.check && verdict.is !== 'same' ? DIFFERENT : 0;
  });

/** Members that etcd lists and that could not be asked: without them, not all members have the same data. */
async function withoutPod({ etcd, ask, reached }: Session, rows: readonly HashRow[]): Promise<readonly HashRow[]> {
  for (const member of reached) {
    const list = await etcd.memberList({ ...ask(member), linearizable: false });
    if (!list.ok) continue;
    return list.value.members
      .map(({ id, name }) => name || hexId(id))
      .filter((name) => rows.every((row) => row.name !== name))
      .map((name) => ({ name, problem: 'its Pod is not running' }));
  }
  return [];
}
