/** `snapshot <file>` of one Pod and `snapshot download`: the database of a member, as a local file. */
import { open, rename, rm } from 'node:fs/promises';
import { EtcdFailure } from '../../etcd/errors.ts';
import { type Context, UserError } from '../context.ts';
import { causeOf, type Reached } from '../gather/session.ts';
import { onTarget, type Target, type TargetFlags } from '../gather/target.ts';
import { bytes } from '../render/units.ts';

const PROGRESS_MS = 1_000;

export const snapshot = (
  context: Context,
  cluster: string | undefined,
  path: string,
  flags: TargetFlags,
): Promise<number> =>
  onTarget(context, cluster, flags, async (target) => {
    const member = await sourceOf(context, target);
    const part = `${path}.part`;
    try {
      const stored = await store(context, target, member, part);
      // Only a snapshot whose digest matched gets the name: a file that is cut off would be restored one day.
      await rename(part, path);
      context.note(`${path}: ${bytes(stored.size)} from ${member.name}, sha256 of the database ${stored.digest}`);
    } catch (error) {
      await rm(part, { force: true });
      if (!(error instanceof EtcdFailure)) throw error;
      throw new UserError(`${member.name}: ${causeOf(member, error.message)}`, { cause: error });
    }
    return 0;
  });

/** A follower that has applied the most; a leader has enough to do. */
async function sourceOf(context: Context, { session }: Target): Promise<Reached> {
  const asked = await Promise.all(
    session.reached.map(async (member) => ({ member, answer: await session.etcd.status(session.ask(member)) })),
  );
  const usable = asked
    .flatMap(({ member, answer }) => (answer.ok && answer.value.leader !== 0n ? [{ member, ...answer.value }] : []))
    .filter(({ isLearner, memberId, alarms }) =>
      session.reached.length === 1
        ? true
        : !isLearner && !alarms.some((each) => each.alarm === 'CORRUPT' && each.memberId === memberId),
    );
  const leads = ({ memberId, leader }: (typeof usable)[number]): number => (memberId === leader ? 1 : 0);
  const [best] = usable.toSorted((a, b) => leads(a) - leads(b) || Number(b.raftAppliedIndex - a.raftAppliedIndex));
  if (best) return best.member;
  const [only] = session.reached;
  if (only && session.reached.length === 1) {
    context.note(`${only.name} follows no leader: the last writes may be missing`);
    return only;
  }
  throw new UserError('no member responds with a leader: take the snapshot of one Pod with -p');
}

async function store(context: Context, { session }: Target, member: Reached, part: string) {
  const stream = session.etcd.maintenance.snapshot({ ...session.ask(member), timeoutMs: 0 });
  const file = await open(part, 'w', 0o600); // every key and value is in it
  let size = 0;
  let shownAt = 0;
  try {
    for await (const chunk of stream) {
      await file.writeFile(chunk);
      size += chunk.length;
      if (!context.isTerminal || context.now() - shownAt < PROGRESS_MS) continue;
      shownAt = context.now();
      context.note(`${bytes(size)} of ${bytes(stream.totalBytes ?? 0)}`);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { size, digest: stream.digest ?? '' };
}
