/**
 * Rules that bring in members. The name is chosen, etcd is told, the object is made, etcd takes it for a voter: each step
 * follows from what etcd's own list says, so whoever comes after a crash goes on where it stopped.
 */

import { peerURL } from '../../../api/names.ts';
import { peerScheme } from '../../../domain/certificate-requirements.ts';
import { identity } from '../../../domain/ownership.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { refTo } from '../../../runtime/plan.ts';
import { joiningMember, joinList, nameIn } from '../build.ts';
import { canMount } from '../credentials/certificates.ts';
import { healthyVoters, learnersOf, removalBlockedBy, votersOf } from '../disruption.ts';
import { etcdStep } from '../etcd-calls.ts';
import {
  isAddedWithoutObject,
  isFull,
  isLeaving,
  joining,
  lastNumber,
  maxMembers,
  needsReplacementVoter,
  nextName,
  SLOW_JOIN_MS,
  startedAt,
} from '../joining.ts';
import {
  type Decided,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  isNotBeingDeleted,
  isPending,
  type MemberView,
  nameOf,
  type Observed,
  wanted,
} from '../observed.ts';
import { isUpToDate } from '../spec-drift.ts';

const PROBE = { firstMs: 100, maxMs: 5_000 };
/**
 * The earlier operator makes the object first: it is added to etcd, and then told whom to join. Not while etcd would refuse it:
 * whoever is lost has to be taken out first, and whoever is a learner to be promoted.
 */
export function completePending(o: Observed): Decided {
  const entries = entriesOf(o);
  const pending = o.members.find((m) => isNotBeingDeleted(m) && isPending(m));
  if (!entries || !pending) return undefined;
  const { name, namespace } = identity(o.cluster);
  const listed = entryOf(o, pending) !== undefined;
  if (!listed && (isFull(o) || healthyVoters(o).length < votersOf(o).length)) return undefined;
  if (!listed)
    return {
      message: `member ${nameOf(pending)} is to join`,
      steps: [
        etcdStep(
          o,
          { name: 'addLearner', peerURL: peerURL(nameOf(pending), name, namespace, peerScheme(o.cluster)) },
          nameOf(pending),
        ),
      ],
    };
  return tellJoinList(pending, entries, `member ${nameOf(pending)} is to know whom to join`);
}

const tellJoinList = (m: MemberView, entries: readonly EtcdMemberEntry[], why: string): Decided => ({
  message: why,
  steps: [{ do: 'patch', to: refTo('EtcdMember', m.object), fields: { spec: { initialCluster: joinList(entries) } } }],
});

/** A member that starts for the first time with another list than etcd's is turned away. */
export function refreshJoinList(o: Observed): Decided {
  const entries = entriesOf(o);
  if (!entries) return undefined;
  const outdated = joining(o).find(
    (m) => entryOf(o, m)?.name === '' && m.object.spec.initialCluster !== joinList(entries),
  );
  return outdated && tellJoinList(outdated, entries, `the members have changed before ${nameOf(outdated)} has joined`);
}

/** A member that never joined holds nothing: one that was made from an older spec is made anew. */
export function rebuildJoining(o: Observed): Decided {
  for (const m of joining(o)) {
    const entry = entryOf(o, m);
    if (!entry || entry.name !== '' || isUpToDate(m, wanted(o)) || removalBlockedBy(o, entry) !== undefined) continue;
    return {
      message: `the spec was edited before ${nameOf(m)} has joined: making it anew`,
      steps: [{ do: 'delete', what: refTo('EtcdMember', m.object) }],
    };
  }
  return undefined;
}

/**
 * One joins just behind the other. The next is added when the one before it has begun to serve: before that, it would still
 * compare its list with etcd's, look up every name on it, and wait for the one that is not there yet. And before that one is
 * promoted: after a promotion etcd takes nobody for five seconds.
 */
export function addLearner(o: Observed): Decided {
  const entries = entriesOf(o);
  if (!entries || entries.length >= maxMembers(o) || isFull(o) || joining(o).length > 0) return undefined;
  if (o.members.some(isLeaving) && !needsReplacementVoter(o)) return undefined;
  if (healthyVoters(o).length < votersOf(o).length) return undefined;
  if (!canMount(o)) return undefined;
  // Refused a moment ago, and there is one that can be promoted meanwhile.
  if (o.refusal !== undefined && learnersOf(o).length > 0) return undefined;
  if (o.etcd.is === 'answers' && o.etcd.unversioned === true)
    return {
      message: 'etcd has not agreed on the version of its cluster yet: on 3.5, whoever joins before that ends',
      requeueAfterMs: PROBE.firstMs,
    };
  const { name, namespace } = identity(o.cluster);
  const joiner = nextName(o);
  const why = needsReplacementVoter(o)
    ? `all members that vote are being deleted: ${joiner} takes over their data before they go. To delete the data, delete EtcdCluster ${name}`
    : `${entries.length} of ${desired(o)} members: adding ${joiner}`;
  return {
    message: why,
    steps: [
      etcdStep(o, { name: 'addLearner', peerURL: peerURL(joiner, name, namespace, peerScheme(o.cluster)) }, joiner),
    ],
    ...(needsReplacementVoter(o) && { event: { type: 'Warning', reason: 'AllMembersDeleted', note: why } }),
  };
}

export function startNext(o: Observed): Decided {
  const entries = entriesOf(o) ?? [];
  const next = entries.find((entry) => isAddedWithoutObject(o, entry));
  if (!next) return undefined;
  const object = joiningMember(o.cluster, nameIn(next), wanted(o), entries);
  return {
    message: `making member ${nameIn(next)}`,
    latch: { membersNamed: lastNumber(o) },
    steps: [{ do: 'create', object }],
  };
}

/** What a growth is waiting for, and when to look again: etcd sends no event when a member begins to serve. */
export function waitForJoining(o: Observed): Decided {
  const waiting = joining(o);
  const [first] = waiting;
  if (!first) return undefined;
  const started = startedAt(first);
  const why = `waiting for etcd in ${waiting.map(nameOf).join(', ')} to answer`;
  return started === undefined || (first.pod.is === 'present' && first.pod.ip === undefined)
    ? { message: why, requeueAfterMs: SLOW_JOIN_MS }
    : { message: why, requeueAfterMs: probeMs(o.now - started, PROBE) };
}
