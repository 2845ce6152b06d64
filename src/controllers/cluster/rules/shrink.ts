/** Rules that remove members, one at a time: etcd removes a member before its PVC is deleted. */
import { quorumOf } from '../../../domain/quorum.ts';
import { DISRUPTION_RECHECK_MS, NEVER_STARTED_MS, UNLISTED_MEMBER_RECHECK_MS } from '../../../domain/timing.ts';
import { refTo } from '../../../runtime/plan.ts';
import { nameIn } from '../build.ts';
import { blockedBy, isPolicyRecorded } from '../disruption-view.ts';
import { removal, transferFirst } from '../etcd-calls.ts';
import { ownEntries } from '../foreign-members.ts';
import { isAddedWithoutObject, maxMembers, needsReplacementVoter, waitsForReplacement } from '../joining.ts';
import {
  createdAt,
  type Decided,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  evidence,
  hasJoined,
  isLosingData,
  isNotBeingDeleted,
  isPending,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
} from '../observed.ts';
import { isHealthy, leaderOf } from '../quorum.ts';

/**
 * Removes a member from etcd if the disruption check allows it. A leader transfers leadership first, which costs clients
 * milliseconds instead of an election; a leader that does not respond to the operator is removed without, because it never could.
 */
function removeMember(o: Observed, entry: EtcdMemberEntry, message: string): Decided {
  if (blockedBy(o, entry.id, 'remove')) return undefined;
  const transfer = memberOf(o, entry)?.self && transferFirst(o, entry.id, message);
  return transfer ?? { message, steps: [removal(o, entry)] };
}

/** An EtcdMember that is being deleted keeps its Pod until etcd has removed the member. One at a time, whether a user or the operator deleted it. */
export function removeLeaving(o: Observed): Decided {
  for (const m of o.members) {
    const entry = isNotBeingDeleted(m) ? undefined : entryOf(o, m);
    const decision = entry && removeMember(o, entry, `removing member ${nameOf(m)}`);
    if (decision) return decision;
  }
  return undefined;
}

/** Members that etcd lists and that have no EtcdMember: after a scale-up that was reverted, or an EtcdMember whose finalizer was stripped. */
export function removeOrphanMember(o: Observed): Decided {
  const entries = ownEntries(o);
  for (const entry of entries) {
    if (memberOf(o, entry)) continue;
    // A user has removed a member and added it again: it runs under another id than the recorded one.
    if (o.members.some(({ answersAs }) => answersAs === entry.id)) continue;
    if (isAddedWithoutObject(o, entry) && entries.length <= maxMembers(o)) continue;
    const decision = removeMember(o, entry, `removing ${nameIn(entry)} from etcd: it has no EtcdMember`);
    if (decision) return decision;
  }
  return undefined;
}

/**
 * Deletes EtcdMembers that etcd no longer lists. Only if a quorum of the recorded voters is still listed: otherwise the list may be
 * that of a member that lost its data and considers itself the whole cluster.
 */
export function deleteRemovedMember(o: Observed): Decided {
  const entries = entriesOf(o);
  const removed = o.members.find((m) => isNotBeingDeleted(m) && !isPending(m) && !entryOf(o, m));
  if (!entries || !removed) return undefined;
  const voters = o.members.filter((m) => m.object.status?.isVoter === true);
  const listed = voters.filter((m) => entryOf(o, m));
  const responds = removed.self !== undefined || removed.answersAs !== undefined;
  if (hasJoined(removed) && (responds || listed.length < quorumOf(voters.length)))
    return {
      message: `etcd does not list ${nameOf(removed)}, which was a member. The operator deletes nothing, because the list may be wrong. If the member was removed on purpose, delete the EtcdMember`,
      requeueAfterMs: UNLISTED_MEMBER_RECHECK_MS,
    };
  if (!isPolicyRecorded(o, removed)) return undefined;
  return {
    message: `etcd has removed member ${nameOf(removed)}: deleting its EtcdMember`,
    steps: [{ do: 'delete', what: refTo('EtcdMember', removed.object) }],
  };
}

/** Order of removal: members that lose their data, then unhealthy members, then learners, then followers, then the newest. */
function removalOrder(o: Observed): readonly MemberView[] {
  const leader = leaderOf(o);
  const rank = (m: MemberView): readonly number[] => [
    isLosingData(m) ? 0 : 1,
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

/**
 * The next to be removed. As long as one member loses its data, no healthy member goes that keeps its own, nor one that has just
 * joined: removing it before its etcd serves would add the next one for the member that loses its data, and so on.
 */
function nextToRemove(o: Observed): MemberView | undefined {
  const order = removalOrder(o);
  if (!order.some(isLosingData) || needsReplacementVoter(o)) return order.find((m) => !isLosingData(m)) ?? order[0];
  const isNew = (m: MemberView): boolean => o.now - createdAt(m) < NEVER_STARTED_MS && evidence(m) === undefined;
  const eligible = order.filter((m) => isLosingData(m) || (!isHealthy(o, m) && !isNew(m)));
  return eligible.find((m) => !blockedBy(o, entryOf(o, m)?.id, 'scaleDown')) ?? eligible[0];
}

export function shrink(o: Observed): Decided {
  if (waitsForReplacement(o)) return undefined;
  const kept = o.members.filter(isNotBeingDeleted);
  const member = nextToRemove(o);
  const entry = member && entryOf(o, member);
  if (kept.length <= desired(o) || !member || !entry) return undefined;
  const message = `scaling from ${kept.length} to ${desired(o)} members: removing ${nameOf(member)}`;
  const blocked = blockedBy(o, entry.id, 'scaleDown');
  // The EtcdMember is deleted only once its removal is allowed: until then a user can still revert the edit.
  return blocked === undefined
    ? { message, steps: [{ do: 'delete', what: refTo('EtcdMember', member.object) }] }
    : { message: `${message}; blocked: ${blocked.message}`, requeueAfterMs: DISRUPTION_RECHECK_MS };
}
