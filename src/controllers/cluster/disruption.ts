/** The one gate: whether a member may be taken away now. Everything that disrupts asks here, and nothing else decides it. */
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

/** How many votes a decision needs. */
export const quorumOf = (voters: number): number => Math.floor(voters / 2) + 1;

/** A member that is further behind than this would not carry the cluster. etcd itself keeps about so much for stragglers. */
const MAX_LAG = 5_000;

const newest = (o: Observed): number => Math.max(0, ...o.members.map((m) => m.self?.applied ?? 0));

/**
 * What a member reports about itself. An address can be reused within the cluster: an answer with another id than that of the
 * member's entry is another member's, and would count one voter twice.
 */
const selfOf = (o: Observed, m: MemberView): SelfReport | undefined => {
  const id = entryOf(o, m)?.id;
  return id === undefined || id === m.self?.id ? m.self : undefined;
};

/**
 * Its data differs from what a quorum agrees on. An alarm alone does not say who is right, and of two halves nobody can
 * tell; whoever does not answer is on neither side. Hashes are asked for only where corruption is reported. One whose etcd
 * ends because a peer has other data has none: it is the odd one only if all other voters have the same data.
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

/** Answers, follows a leader, has the data and nothing against it. A full database serves on. */
export function isHealthy(o: Observed, m: MemberView): boolean {
  const self = selfOf(o, m);
  if (!self || self.leader === undefined || self.alarms.includes('CORRUPT')) return false;
  return !isCorrupt(o, m) && newest(o) - self.applied <= MAX_LAG;
}

export const votersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => !e.isLearner);
export const learnersOf = (o: Observed): readonly EtcdMemberEntry[] => (entriesOf(o) ?? []).filter((e) => e.isLearner);

const healthySelf = (o: Observed, entry: EtcdMemberEntry): SelfReport | undefined => {
  const m = memberOf(o, entry);
  return m && isHealthy(o, m) ? m.self : undefined;
};
export const healthyVoters = (o: Observed): readonly EtcdMemberEntry[] =>
  votersOf(o).filter((entry) => healthySelf(o, entry));

/** Who leads, if all that can tell agree. */
export function leaderOf(o: Observed): string | undefined {
  const told = new Set(votersOf(o).flatMap((entry) => healthySelf(o, entry)?.leader ?? []));
  return told.size === 1 ? [...told][0] : undefined;
}

const called = (o: Observed, entry: EtcdMemberEntry): string => {
  const m = memberOf(o, entry);
  return m ? nameOf(m) : entry.name || entry.peerURLs.join();
};

const stays = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && isNotBeingDeleted(m);
};

/** It will not come back, has other data, or is to go and down: it gives nothing to a quorum, and without it the others need no more. */
const isLost = (o: Observed, entry: EtcdMemberEntry): boolean => {
  const m = memberOf(o, entry);
  return m !== undefined && (evidence(m) !== undefined || isCorrupt(o, m) || !isNotBeingDeleted(m)) && !isHealthy(o, m);
};

/**
 * Why this member may not be taken away now; `undefined` when it may. A learner has no vote to lose. Without a voter,
 * all others must be healthy: what is left is then a quorum of itself, and every acknowledged write is there. Two of five that
 * are lost would wait for each other for ever: for one that is, a quorum of the others is enough.
 */
export function removalBlockedBy(o: Observed, victim: EtcdMemberEntry, comesBack = false): string | undefined {
  if (leaderOf(o) === undefined) return 'the members do not agree on a leader';
  if (victim.isLearner) return undefined;
  const others = votersOf(o).filter((entry) => entry.id !== victim.id);
  const sick = others.filter((entry) => !healthySelf(o, entry)).map((entry) => called(o, entry));
  const helps = isLost(o, victim) && others.length - sick.length >= quorumOf(others.length);
  if (sick.length > 0 && !helps)
    return `${sick.join(', ')} would be needed, and ${sick.length === 1 ? 'is' : 'are'} not healthy`;
  // One that is down already takes nothing away by going, whoever else is on the way out.
  if (!healthySelf(o, victim)) return undefined;
  return comesBack || others.some((entry) => stays(o, entry)) ? undefined : 'nobody that votes would stay';
}

/** The same for one that comes back with its data at once. A single voter may be restarted: its downtime is unavoidable. */
export const restartBlockedBy = (o: Observed, victim: EtcdMemberEntry): string | undefined =>
  removalBlockedBy(o, victim, true);
