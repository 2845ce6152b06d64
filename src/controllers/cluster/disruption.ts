/** The disruption check: whether a member may be removed or restarted now. Every rule that disrupts a member asks here. */
import {
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  evidence,
  isInconsistent,
  isNotBeingDeleted,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
  type SelfReport,
} from './observed.ts';

export const quorumOf = (voters: number): number => Math.floor(voters / 2) + 1;

/** A member that lags by more raft entries does not count as healthy. etcd keeps about this number of entries for slow followers. */
const MAX_LAG = 5_000;

const maxApplied = (o: Observed): number => Math.max(0, ...o.members.map((m) => m.self?.applied ?? 0));

/**
 * What a member reports about itself. An address can be reused within the cluster: a response with another id than that of the
 * member's entry comes from another member, and would count one voter twice.
 */
const selfOf = (o: Observed, m: MemberView): SelfReport | undefined => {
  const id = entryOf(o, m)?.id;
  return id === undefined || id === m.self?.id ? m.self : undefined;
};

/**
 * Its data differs from the data of a quorum. An alarm alone does not identify the corrupt member, and two halves that differ
 * do not either. Hashes are requested only while corruption is reported. A member whose etcd exits because a peer has other data
 * has no hash: it is the corrupt one only if the hashes of all other voters are equal.
 */
export function isCorrupt(o: Observed, m: MemberView): boolean {
  const own = entryOf(o, m)?.id;
  const hashes = votersOf(o).map((entry) => {
    const voter = memberOf(o, entry);
    return { id: entry.id, hash: voter && selfOf(o, voter)?.hash };
  });
  const votes = (hash: string | undefined): number => hashes.filter((other) => other.hash === hash).length;
  const agreed = hashes.find(({ hash }) => votes(hash) >= quorumOf(hashes.length))?.hash;
  if (agreed === undefined) return false;
  const hash = selfOf(o, m)?.hash;
  if (hash !== undefined) return hash !== agreed;
  return isInconsistent(m) && hashes.every((other) => other.id === own || other.hash === agreed);
}

/** Responds, follows a leader, does not lag and is not corrupt. A member with a full database still serves reads. */
export function isHealthy(o: Observed, m: MemberView): boolean {
  const self = selfOf(o, m);
  if (!self || self.leader === undefined || self.alarms.includes('CORRUPT')) return false;
  return !isCorrupt(o, m) && maxApplied(o) - self.applied <= MAX_LAG;
}

export const votersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => !e.isLearner);
export const learnersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => e.isLearner);

const healthySelf = (o: Observed, entry: EtcdMemberEntry): SelfReport | undefined => {
  const m = memberOf(o, entry);
  return m && isHealthy(o, m) ? m.self : undefined;
};
export const healthyVoters = (o: Observed): readonly EtcdMemberEntry[] =>
  votersOf(o).filter((entry) => healthySelf(o, entry));

/** The leader, if all healthy voters agree on it. */
export function leaderOf(o: Observed): string | undefined {
  const leaders = new Set(votersOf(o).flatMap((entry) => healthySelf(o, entry)?.leader ?? []));
  return leaders.size === 1 ? [...leaders][0] : undefined;
}

const displayName = (o: Observed, entry: EtcdMemberEntry): string => {
  const m = memberOf(o, entry);
  return m ? nameOf(m) : entry.name || entry.peerURLs.join();
};

const isKept = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && isNotBeingDeleted(m);
};

/** It has failure evidence, is corrupt, or is unhealthy while being deleted: removing it does not weaken the quorum of the others. */
const isLost = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && (evidence(m) !== undefined || isCorrupt(o, m) || !isNotBeingDeleted(m)) && !isHealthy(o, m);
};

/**
 * Why this member may not be removed now; `undefined` when it may. A learner has no vote. Before a voter is removed, all others
 * must be healthy, so that they have every acknowledged write. If the member is lost itself, a quorum of the others is enough:
 * otherwise two lost members of five would block each other for ever.
 */
export function removalBlockedBy(o: Observed, entry: EtcdMemberEntry, comesBack = false): string | undefined {
  if (leaderOf(o) === undefined) return 'the members do not agree on a leader';
  if (entry.isLearner) return undefined;
  const others = votersOf(o).filter(({ id }) => id !== entry.id);
  const unhealthy = others.filter((other) => !healthySelf(o, other)).map((other) => displayName(o, other));
  const helps = isLost(o, entry) && others.length - unhealthy.length >= quorumOf(others.length);
  if (unhealthy.length > 0 && !helps)
    return `the quorum needs ${unhealthy.join(', ')}, which ${unhealthy.length === 1 ? 'is' : 'are'} not healthy`;
  // An unhealthy member does not serve: its removal disrupts nothing, even while other members are being deleted.
  if (!healthySelf(o, entry)) return undefined;
  return comesBack || others.some((other) => isKept(o, other)) ? undefined : 'all other voters are being deleted';
}

/** The same check for a restart, after which the member has its data again. A single voter may be restarted: its downtime is unavoidable. */
export const restartBlockedBy = (o: Observed, entry: EtcdMemberEntry): string | undefined =>
  removalBlockedBy(o, entry, true);
