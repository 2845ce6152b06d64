/** Rules that take members out, one at a time: etcd forgets a member before its volume goes. */
import { headlessServiceName } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { seen } from '../../../runtime/plan.ts';
import { nameIn } from '../build.ts';
import { healthyVoters, isHealthy, leaderOf, mayNotGo, quorumOf } from '../disruption.ts';
import { change, removal } from '../etcd-calls.ts';
import { isAwaited, mostMembers } from '../joining.ts';
import {
  type Answered,
  createdAt,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  hasJoined,
  isPending,
  isStaying,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
} from '../observed.ts';

const RETRY_MS = 1_000;

/**
 * Out of etcd, if the gate is open. A leader hands over first: its clients then lose milliseconds instead of an election. One that
 * leads its peers but does not answer the operator could not be asked to, ever.
 */
function takeOut(o: Observed, entry: EtcdMemberEntry, why: string): Answered {
  if (mayNotGo(o, entry) !== undefined) return undefined;
  const heir = healthyVoters(o).find(({ id }) => id !== entry.id);
  if (leaderOf(o) === entry.id && heir && memberOf(o, entry)?.self)
    return {
      why: `${why}; it leads, and hands over to ${nameIn(heir)} first`,
      steps: [change(o, { name: 'moveLeader', to: heir.id }, nameIn(heir))],
    };
  return { why, steps: [removal(o, entry)] };
}

/** A member that is being deleted stays until etcd has let it go. One after the other, whoever asked for it. */
export function removeLeaving(o: Observed): Answered {
  for (const m of o.members) {
    const entry = isStaying(m) ? undefined : entryOf(o, m);
    const answer = entry && takeOut(o, entry, `member ${nameOf(m)} is to go`);
    if (answer) return answer;
  }
  return undefined;
}

/** Members on etcd's list that have no object: what is left of a growth that was taken back, or of an object that was torn out. */
export function removeStranger(o: Observed): Answered {
  const entries = entriesOf(o) ?? [];
  const { name, namespace } = identity(o.cluster);
  const domain = `.${headlessServiceName(name)}.${namespace}.svc`;
  for (const entry of entries) {
    if (memberOf(o, entry)) continue;
    // A person has removed a member and added it again: it runs under another id than the one that is recorded.
    if (o.members.some(({ answersAs }) => answersAs === entry.id)) continue;
    if (isAwaited(o, entry) && entries.length <= mostMembers(o)) continue;
    // A voter under an address that we never gave out is somebody's, and may be alive.
    if (!entry.isLearner && !entry.peerURLs.some((url) => url.includes(domain))) continue;
    const answer = takeOut(o, entry, `etcd counts ${nameIn(entry)}, which has no EtcdMember`);
    if (answer) return answer;
  }
  return undefined;
}

/**
 * Members that etcd has removed although nobody deleted them here. Believed only when most of those that voted are still on
 * the list: a list without them could be that of an emptied member that takes itself for the cluster.
 */
export function forget(o: Observed): Answered {
  const entries = entriesOf(o);
  const gone = o.members.find((m) => isStaying(m) && !isPending(m) && !entryOf(o, m));
  if (!entries || !gone) return undefined;
  const voted = o.members.filter((m) => m.object.status?.isVoter === true);
  const left = voted.filter((m) => entryOf(o, m));
  const answers = gone.self !== undefined || gone.answersAs !== undefined;
  if (hasJoined(gone) && (answers || left.length < quorumOf(voted.length)))
    return {
      why: `etcd does not list ${nameOf(gone)}, which was a member: nothing is deleted, because that could be a mistake. If it was removed on purpose, delete the EtcdMember`,
      wakeAfter: 10 * RETRY_MS,
    };
  return {
    why: `etcd has no member ${nameOf(gone)} any more`,
    steps: [{ do: 'delete', what: seen('EtcdMember', gone.object) }],
  };
}

/** The least loss: what is not healthy, then what does not vote, then what does not lead, then the newest. */
function leastLoss(o: Observed): readonly MemberView[] {
  const leader = leaderOf(o);
  const rank = (m: MemberView): readonly number[] => [
    isHealthy(o, m) ? 1 : 0,
    entryOf(o, m)?.isLearner === false ? 1 : 0,
    entryOf(o, m)?.id === leader ? 1 : 0,
    -createdAt(m),
  ];
  return o.members.filter(isStaying).sort((a, b) => {
    const [x, y] = [rank(a), rank(b)];
    const i = x.findIndex((value, at) => value !== y[at]);
    return i < 0 ? (nameOf(a) < nameOf(b) ? 1 : -1) : (x[i] ?? 0) - (y[i] ?? 0);
  });
}

export function shrink(o: Observed): Answered {
  const staying = o.members.filter(isStaying);
  const [victim] = leastLoss(o);
  const entry = victim && entryOf(o, victim);
  if (staying.length <= desired(o) || !victim || !entry) return undefined;
  const why = `${staying.length} members, and ${desired(o)} are wanted: ${nameOf(victim)} goes`;
  const closed = mayNotGo(o, entry);
  // The deletion itself is decided only when it can be carried out: an edit can still be taken back before that.
  return closed === undefined
    ? { why, steps: [{ do: 'delete', what: seen('EtcdMember', victim.object) }] }
    : { why: `${why}, but not now: ${closed}`, wakeAfter: RETRY_MS };
}
