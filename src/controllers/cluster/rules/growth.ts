/**
 * Rules that bring in members. The name is chosen, etcd is told, the object is made, etcd takes it for a voter: each step
 * follows from what etcd's own list says, so whoever comes after a crash goes on where it stopped.
 */
import { peerScheme } from '../../../domain/certificate-requirements.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { memberName, memberNumber, peerURL } from '../../../api/names.ts';
import { probeMs } from '../../../lib/backoff.ts';
import { type Answer, seen } from '../../../runtime/plan.ts';
import { isUpdated } from '../spec-drift.ts';
import { joiningMember, joinList, nameIn } from '../build.ts';
import { canMount } from '../credentials/certificates.ts';
import { change } from '../etcd-calls.ts';
import { healthyVoters, learnersOf, mayNotGo, votersOf } from '../disruption.ts';
import {
  createdAt,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  hasJoined,
  identity,
  isPending,
  isStaying,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
  takesPart,
  wanted,
} from '../observed.ts';

type Answered = Answer<EtcdClusterStatus> | undefined;

/** A learner is ready within a tenth of a second when there is little to copy; a large database takes minutes. */
const PROMOTE = { firstMs: 50, maxMs: 5_000 };
const PROBE = { firstMs: 100, maxMs: 5_000 };
/** Numbers of names from here on are looked at; more members were never added between two records of the counter. */
const AHEAD = 32;

/** The number that a name was made from, if it is one of ours. */
function numberOf(o: Observed, name: string): number | undefined {
  const last = (o.cluster.status?.membersNamed ?? 0) + AHEAD;
  const n = memberNumber(identity(o.cluster).name, identity(o.cluster).uid, name) ?? 0;
  return n > 0 && n <= last ? n : undefined;
}

/** The last number that was given out: what is recorded, or what etcd was told after that, be it by chance by an earlier operator. */
const lastNumber = (o: Observed): number =>
  Math.max(o.cluster.status?.membersNamed ?? 0, ...(entriesOf(o) ?? []).map((e) => numberOf(o, nameIn(e)) ?? 0));

const nextName = (o: Observed): string => {
  const { name: cluster, uid } = identity(o.cluster);
  return memberName(cluster, uid, lastNumber(o) + 1);
};

/** Added, and nobody was made for it yet. It has not started: there is no name, and nothing that it could have said. */
export const isAwaited = (o: Observed, entry: EtcdMemberEntry): boolean =>
  entry.isLearner && entry.name === '' && !memberOf(o, entry) && numberOf(o, nameIn(entry)) !== undefined;

const startedAt = (m: MemberView): number | undefined =>
  m.pod.is === 'present' ? (m.pod.runningSince ?? m.pod.startedAt) : undefined;
const ageMs = (o: Observed, m: MemberView): number => o.now - createdAt(m);

/** Made, and its etcd neither answers nor takes part yet. */
const joining = (o: Observed): readonly MemberView[] =>
  o.members.filter(
    (m) => isStaying(m) && !hasJoined(m) && !m.self && !takesPart(o, m) && entryOf(o, m)?.isLearner === true,
  );

/**
 * The earlier operator makes the object first: it is added to etcd, and then told whom to join. Not while etcd would refuse it:
 * whoever is lost has to be taken out first, and whoever is a learner to be promoted.
 */
export function completePending(o: Observed): Answered {
  const entries = entriesOf(o);
  const pending = o.members.find((m) => isStaying(m) && isPending(m));
  if (!entries || !pending) return undefined;
  const { name, namespace } = identity(o.cluster);
  const listed = entryOf(o, pending) !== undefined;
  if (!listed && (isFull(o) || healthyVoters(o).length < votersOf(o).length)) return undefined;
  if (!listed)
    return {
      why: `member ${nameOf(pending)} is to join`,
      steps: [
        change(
          o,
          { name: 'addLearner', peerURL: peerURL(nameOf(pending), name, namespace, peerScheme(o.cluster)) },
          nameOf(pending),
        ),
      ],
    };
  return tellJoinList(pending, entries, `member ${nameOf(pending)} is to know whom to join`);
}

const tellJoinList = (m: MemberView, entries: readonly EtcdMemberEntry[], why: string): Answered => ({
  why,
  steps: [{ do: 'patch', to: seen('EtcdMember', m.object), fields: { spec: { initialCluster: joinList(entries) } } }],
});

/** A member that starts for the first time with another list than etcd's is turned away. */
export function refreshJoinList(o: Observed): Answered {
  const entries = entriesOf(o);
  if (!entries) return undefined;
  const outdated = joining(o).find(
    (m) => entryOf(o, m)?.name === '' && m.object.spec.initialCluster !== joinList(entries),
  );
  return outdated && tellJoinList(outdated, entries, `the members have changed before ${nameOf(outdated)} has joined`);
}

/** A member that never joined holds nothing: one that was made from an older spec is made anew. */
export function rebuildJoining(o: Observed): Answered {
  for (const m of joining(o)) {
    const entry = entryOf(o, m);
    if (!entry || entry.name !== '' || isUpdated(m, wanted(o)) || mayNotGo(o, entry) !== undefined) continue;
    return {
      why: `the spec was edited before ${nameOf(m)} has joined: making it anew`,
      steps: [{ do: 'delete', what: seen('EtcdMember', m.object) }],
    };
  }
  return undefined;
}

/** How many learners every member that votes lets the cluster have. */
const room = (o: Observed): number =>
  Math.min(
    ...votersOf(o).map((entry) => {
      const pod = memberOf(o, entry)?.pod;
      return pod?.is === 'present' ? pod.maxLearners : 1;
    }),
  );

/** Joining members take seconds to start; one whose Pod finds no node may take for ever, and nobody can be added meanwhile. */
const TAKES_LONG_MS = 15_000;
const isStuck = (o: Observed, m: MemberView): boolean => ageMs(o, m) > TAKES_LONG_MS;

const isLeaving = (m: MemberView | undefined): boolean => m !== undefined && !isStaying(m);

/** Somebody deleted all that vote. What they have must not go with the last of them: a newcomer takes over first. */
const needsHeir = (o: Observed): boolean =>
  votersOf(o).length > 0 && votersOf(o).every((entry) => isLeaving(memberOf(o, entry)));

/** So many may be on etcd's list. */
export const mostMembers = (o: Observed): number => (needsHeir(o) ? votersOf(o).length + 1 : desired(o));

/**
 * One joins just behind the other. The next is added when the one before it has begun to serve: before that, it would still
 * compare its list with etcd's, look up every name on it, and wait for the one that is not there yet. And before that one is
 * promoted: after a promotion etcd takes nobody for five seconds.
 */
export function addLearner(o: Observed): Answered {
  const entries = entriesOf(o);
  if (!entries || entries.length >= mostMembers(o) || isFull(o) || joining(o).length > 0) return undefined;
  if (o.members.some(isLeaving) && !needsHeir(o)) return undefined;
  if (healthyVoters(o).length < votersOf(o).length) return undefined;
  if (!canMount(o)) return undefined;
  // Refused a moment ago, and there is one that can be promoted meanwhile.
  if (o.refusal !== undefined && learnersOf(o).length > 0) return undefined;
  if (o.etcd.is === 'answers' && o.etcd.unversioned === true)
    return {
      why: 'etcd has not agreed on the version of its cluster yet: on 3.5, whoever joins before that ends',
      wakeAfter: PROBE.firstMs,
    };
  const { name, namespace } = identity(o.cluster);
  const joiner = nextName(o);
  const why = needsHeir(o)
    ? `all members that vote are being deleted: ${joiner} takes over their data before they go. To delete the data, delete EtcdCluster ${name}`
    : `${entries.length} of ${desired(o)} members: adding ${joiner}`;
  return {
    why,
    steps: [
      change(o, { name: 'addLearner', peerURL: peerURL(joiner, name, namespace, peerScheme(o.cluster)) }, joiner),
    ],
    ...(needsHeir(o) && { notice: { type: 'Warning', reason: 'AllMembersDeleted', note: why } }),
  };
}

const isFull = (o: Observed): boolean => learnersOf(o).length >= room(o);

export function startNext(o: Observed): Answered {
  const entries = entriesOf(o) ?? [];
  const next = entries.find((entry) => isAwaited(o, entry));
  if (!next) return undefined;
  const object = joiningMember(o.cluster, nameIn(next), wanted(o), entries);
  return {
    why: `making member ${nameIn(next)}`,
    latch: { membersNamed: lastNumber(o) },
    steps: [{ do: 'create', object }],
  };
}

/** As soon as etcd takes it: until then a learner is a copy that does not count. Those that come after it are added first. */
export function promote(o: Observed): Answered {
  const [first] = learnersOf(o)
    .flatMap((entry) => {
      const m = memberOf(o, entry);
      return m && isStaying(m) && (m.self || takesPart(o, m)) ? [{ entry, m, applied: m.self?.applied ?? 0 }] : [];
    })
    .sort((a, b) => b.applied - a.applied);
  const more = (entriesOf(o)?.length ?? 0) < desired(o) && !isFull(o) && o.refusal === undefined;
  if (!first || (more && joining(o).some((m) => !isStuck(o, m)))) return undefined;
  const waited = o.now - (startedAt(first.m) ?? o.now);
  return {
    why: `member ${nameOf(first.m)} has joined and is to vote`,
    steps: [change(o, { name: 'promote', id: first.entry.id }, nameOf(first.m), probeMs(waited, PROMOTE))],
  };
}

/** What a growth is waiting for, and when to look again: etcd sends no event when a member begins to serve. */
export function waitForJoining(o: Observed): Answered {
  const waiting = joining(o);
  const [first] = waiting;
  if (!first) return undefined;
  const started = startedAt(first);
  const why = `waiting for etcd in ${waiting.map(nameOf).join(', ')} to answer`;
  return started === undefined || (first.pod.is === 'present' && first.pod.ip === undefined)
    ? { why, wakeAfter: TAKES_LONG_MS }
    : { why, wakeAfter: probeMs(o.now - started, PROBE) };
}
