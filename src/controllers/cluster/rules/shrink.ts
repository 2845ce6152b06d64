/** Rules that take members out, one at a time: etcd forgets a member before its volume goes. */
import { headlessServiceName } from '../../../api/names.ts';
import { identity } from '../../../domain/ownership.ts';
import { refTo } from '../../../runtime/plan.ts';
import { nameIn } from '../build.ts';
import { healthyVoters, isHealthy, leaderOf, quorumOf, removalBlockedBy } from '../disruption.ts';
import { etcdStep, removal } from '../etcd-calls.ts';
import { isAddedWithoutObject, maxMembers } from '../joining.ts';
import {
  createdAt,
  type Decided,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  hasJoined,
  isNotBeingDeleted,
  isPending,
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
function removeMember(o: Observed, entry: EtcdMemberEntry, why: string): Decided {
  if (removalBlockedBy(o, entry) !== undefined) return undefined;
  const heir = healthyVoters(o).find(({ id }) => id !== entry.id);
  if (leaderOf(o) === entry.id && heir && memberOf(o, entry)?.self)
    return {
      message: `${why}; it leads, and hands over to ${nameIn(heir)} first`,
      steps: [etcdStep(o, { name: 'moveLeader', to: heir.id }, nameIn(heir))],
    };
  return { message: why, steps: [removal(o, entry)] };
}

/** A member that is being deleted stays until etcd has let it go. One after the other, whoever asked for it. */
export function removeLeaving(o: Observed): Decided {
  for (const m of o.members) {
    const entry = isNotBeingDeleted(m) ? undefined : entryOf(o, m);
    const answer = entry && removeMember(o, entry, `member ${nameOf(m)} is to go`);
    if (answer) return answer;
  }
  return undefined;
}

/** Members on etcd's list that have no object: what is left of a growth that was taken back, or of an object that was torn out. */
export function removeOrphanMember(o: Observed): Decided {
  const entries = entriesOf(o) ?? [];
  const { name, namespace } = identity(o.cluster);
  const domain = `.${headlessServiceName(name)}.${namespace}.svc`;
  for (const entry of entries) {
    if (memberOf(o, entry)) continue;
    // A person has removed a member and added it again: it runs under another id than the one that is recorded.
    if (o.members.some(({ answersAs }) => answersAs === entry.id)) continue;
    if (isAddedWithoutObject(o, entry) && entries.length <= maxMembers(o)) continue;
    // A voter under an address that we never gave out is somebody's, and may be alive.
    if (!entry.isLearner && !entry.peerURLs.some((url) => url.includes(domain))) continue;
    const answer = removeMember(o, entry, `etcd counts ${nameIn(entry)}, which has no EtcdMember`);
    if (answer) return answer;
  }
  return undefined;
}

/**
 * Members that etcd has removed although nobody deleted them here. Believed only when most of those that voted are still on
 * the list: a list without them could be that of an emptied member that takes itself for the cluster.
 */
export function deleteRemovedMember(o: Observed): Decided {
  const entries = entriesOf(o);
  const gone = o.members.find((m) => isNotBeingDeleted(m) && !isPending(m) && !entryOf(o, m));
  if (!entries || !gone) return undefined;
  const voted = o.members.filter((m) => m.object.status?.isVoter === true);
  const left = voted.filter((m) => entryOf(o, m));
  const answers = gone.self !== undefined || gone.answersAs !== undefined;
  if (hasJoined(gone) && (answers || left.length < quorumOf(voted.length)))
    return {
      message: `etcd does not list ${nameOf(gone)}, which was a member: nothing is deleted, because that could be a mistake. If it was removed on purpose, delete the EtcdMember`,
      requeueAfterMs: 10 * RETRY_MS,
    };
  return {
    message: `etcd has no member ${nameOf(gone)} any more`,
    steps: [{ do: 'delete', what: refTo('EtcdMember', gone.object) }],
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
  return o.members.filter(isNotBeingDeleted).sort((a, b) => {
    const [x, y] = [rank(a), rank(b)];
    const i = x.findIndex((value, at) => value !== y[at]);
    return i < 0 ? (nameOf(a) < nameOf(b) ? 1 : -1) : (x[i] ?? 0) - (y[i] ?? 0);
  });
}

export function shrink(o: Observed): Decided {
  const staying = o.members.filter(isNotBeingDeleted);
  const [victim] = leastLoss(o);
  const entry = victim && entryOf(o, victim);
  if (staying.length <= desired(o) || !victim || !entry) return undefined;
  const why = `${staying.length} members, and ${desired(o)} are wanted: ${nameOf(victim)} goes`;
  const closed = removalBlockedBy(o, entry);
  // The deletion itself is decided only when it can be carried out: an edit can still be taken back before that.
  return closed === undefined
    ? { message: why, steps: [{ do: 'delete', what: refTo('EtcdMember', victim.object) }] }
    : { message: `${why}, but not now: ${closed}`, requeueAfterMs: RETRY_MS };
}
