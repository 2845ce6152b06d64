/**
 * Rules that add members: add a learner to etcd, create its EtcdMember, promote it. Each step is derived from etcd's member
 * list, so after a crash the operator continues where it stopped.
 */

import { identity } from '../../../domain/ownership.ts';
import { JOIN_PROBE, NEVER_STARTED_MS, SLOW_JOIN_MS } from '../../../domain/timing.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { refTo } from '../../../runtime/plan.ts';
import { joiningMember, joinList, nameIn } from '../build.ts';
import { blockedBy } from '../disruption-view.ts';
import { addition } from '../etcd-calls.ts';
import { ownEntries } from '../foreign-members.ts';
import {
  isAddedWithoutObject,
  isFull,
  isJoinRefused,
  isLeaving,
  joining,
  lastNumber,
  losingMemory,
  maxMembers,
  needsReplacementVoter,
  nextName,
  startedAt,
} from '../joining.ts';
import {
  createdAt,
  type Decided,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  isLosingPvc,
  isNotBeingDeleted,
  isPending,
  type MemberView,
  nameOf,
  type Observed,
} from '../observed.ts';
import { peersOf } from '../peers.ts';
import { released } from '../quarantine.ts';
import { healthyVoters, learnersOf } from '../quorum.ts';
import { joinTarget } from '../rollout/version-change.ts';
import { isUpToDate } from '../spec-drift.ts';
import { voterSteps } from '../voters.ts';

/**
 * The earlier operator creates the EtcdMember first: this rule adds it to etcd and then writes its initialCluster. Not while etcd
 * would refuse it: a lost voter has to be removed first, or a learner promoted.
 */
export function completePending(o: Observed): Decided {
  const entries = entriesOf(o);
  const pending = o.members.find((m) => isNotBeingDeleted(m) && isPending(m));
  if (!entries || !pending) return undefined;
  if (entryOf(o, pending))
    return writeJoinList(pending, entries, `writing the initialCluster of member ${nameOf(pending)}`);
  if (isFull(o) || isVoterUnhealthy(o) || o.credentials.join.blockedBy) return undefined;
  return { message: `adding member ${nameOf(pending)} to etcd`, steps: [addition(o, nameOf(pending))] };
}

/** etcd would refuse to add a member. Whether a voter of a user is healthy, etcd alone knows. */
const isVoterUnhealthy = (o: Observed): boolean => {
  const healthy = healthyVoters(o);
  return ownEntries(o).some((entry) => !entry.isLearner && !healthy.includes(entry));
};

const writeJoinList = (m: MemberView, entries: readonly EtcdMemberEntry[], message: string): Decided => ({
  message,
  steps: [{ do: 'patch', to: refTo('EtcdMember', m.object), fields: { spec: { initialCluster: joinList(entries) } } }],
});

/** etcd exits when it starts for the first time with an initial cluster that differs from the member list. */
export function refreshJoinList(o: Observed): Decided {
  const entries = entriesOf(o);
  if (!entries) return undefined;
  const outdated = joining(o).find(
    (m) => entryOf(o, m)?.name === '' && m.object.spec.initialCluster !== joinList(entries),
  );
  if (!outdated) return undefined;
  const message = `the membership changed before ${nameOf(outdated)} joined: updating its initialCluster`;
  return writeJoinList(outdated, entries, message);
}

/**
 * A member that never joined has no data: with an outdated spec, it is deleted and recreated. One whose etcd has started, and has
 * crashed before it joined, has none that the voters lack.
 */
export function rebuildJoining(o: Observed): Decided {
  for (const m of joining(o)) {
    if (isUpToDate(m, joinTarget(o))) continue;
    if (blockedBy(o, entryOf(o, m)?.id, 'discardJoiner') && blockedBy(o, nameOf(m), 'rejoin')) continue;
    return {
      message: `the spec changed before ${nameOf(m)} joined: recreating it`,
      steps: [{ do: 'delete', what: refTo('EtcdMember', m.object) }],
    };
  }
  return undefined;
}

/** Auth is enabled before other members serve clients without it. */
export const waitForAuth = (o: Observed): Decided => {
  const { blockedBy } = o.credentials.join;
  return blockedBy?.waits === false ? { message: blockedBy.message } : undefined;
};

/**
 * Adds the next learner when the previous one serves: before that, the previous one still compares its initial cluster with the
 * member list, resolves every name in it, and would wait for a Pod that does not exist yet. And before the previous one is
 * promoted: etcd refuses to add a member for five seconds after a promotion.
 */
export function addLearner(o: Observed): Decided {
  const entries = ownEntries(o);
  if (!entriesOf(o) || entries.length >= maxMembers(o) || isFull(o) || joining(o).length > 0) return undefined;
  if (o.members.some(isLeaving) && !needsReplacementVoter(o)) return undefined;
  if (isVoterUnhealthy(o)) return undefined;
  if (o.credentials.join.blockedBy) return undefined;
  // The Pod of a seed that is not recorded as a voter may still bootstrap: with an emptied volume it would do so again.
  if (entries.length === 1 && voterSteps(o).length > 0) return undefined;
  // The last attempt was refused, and a learner can be promoted meanwhile.
  if (isJoinRefused(o) && learnersOf(o).length > 0) return undefined;
  if (o.etcd.is === 'answers' && o.etcd.unversioned === true)
    return {
      message: 'the members have not agreed on a cluster version yet: etcd 3.5 exits when it joins before that',
      requeueAfterMs: JOIN_PROBE.firstMs,
    };
  const { name } = identity(o.cluster);
  const joiner = nextName(o);
  const losesPvc = o.members.filter(isLosingPvc).map(nameOf);
  const losing = losesPvc.length > 0 ? losesPvc : losingMemory(o).map(nameOf);
  if (losing.length > 0 && entries.length >= desired(o)) {
    const what = losesPvc.length > 0 ? 'PVC' : 'Pod';
    const loss = losesPvc.length > 0 ? '' : ' with its data in memory';
    return {
      message: `the ${what} of ${losing.join(', ')} is being deleted${loss}: ${joiner} replicates the data before a member is removed`,
      steps: [addition(o, joiner)],
    };
  }
  const message = needsReplacementVoter(o)
    ? `all voters are being deleted: ${joiner} replicates their data before they are removed. To delete the data, delete EtcdCluster ${name}`
    : `${entries.length} of ${desired(o)} members: adding ${joiner}`;
  return {
    message,
    steps: [addition(o, joiner)],
    ...(needsReplacementVoter(o) && { event: { type: 'Warning', reason: 'AllMembersDeleted', note: message } }),
  };
}

export function startNext(o: Observed): Decided {
  const entries = entriesOf(o) ?? [];
  const next = entries.find((entry) => isAddedWithoutObject(o, entry));
  if (!next) return undefined;
  const object = joiningMember(o.cluster, nameIn(next), joinTarget(o), entries, peersOf(o));
  return {
    message: `creating member ${nameIn(next)}`,
    latch: { membersNamed: lastNumber(o) },
    steps: [{ do: 'create', object }],
  };
}

/** Polls joining members: etcd sends no event when a member starts to serve. */
export function waitForJoining(o: Observed): Decided {
  const waiting = joining(o);
  const [first] = waiting;
  if (!first) return undefined;
  const release = released(o);
  if (release) return release;
  const started = startedAt(first);
  const message = `waiting for etcd in ${waiting.map(nameOf).join(', ')} to answer`;
  if (started !== undefined && !(first.pod.is === 'present' && first.pod.ip === undefined))
    return { message, requeueAfterMs: probeMs(o.now - started, JOIN_PROBE) };
  const atRest = waiting.every((m) => startedAt(m) === undefined && o.now - createdAt(m) > NEVER_STARTED_MS);
  return { message, requeueAfterMs: SLOW_JOIN_MS, atRest };
}
