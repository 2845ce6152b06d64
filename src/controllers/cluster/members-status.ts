/** The members in the status of an EtcdCluster. Figures are rounded with hysteresis: each change costs a status write. */
import { quotaOf } from '../../api/defaults.ts';
import type { EtcdClusterStatus, MemberEntry } from '../../api/etcd-cluster-status.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { READINESS_PROBED_WITHIN_MS } from '../../domain/timing.ts';
import { clusterVersionOf } from '../../domain/version-path.ts';
import { present } from '../../lib/present.ts';
import { versionNumber } from '../../lib/version.ts';
import {
  type ClusterFacts,
  entriesOf,
  entryOf,
  isNotBeingDeleted,
  isReadyVoter,
  isVoter,
  type MemberView,
  nameOf,
  participates,
  type SelfReport,
} from './observed.ts';
import { isHealthy, votersOf } from './quorum.ts';
import { outdatedFields } from './rollout/template.ts';
import { clusterMinor } from './rollout/version-facts.ts';

const MI = 1024 ** 2;
const SMALLEST = 16 * MI;

/** Rounded up to a power of two. The previous value is kept until the size is above it or below a quarter of it. */
export function coarseSize(bytes: number, before: number | undefined): number {
  if (before !== undefined && bytes <= before && (bytes > before / 4 || before === SMALLEST)) return before;
  let step = SMALLEST;
  while (step < bytes) step *= 2;
  return step;
}

/** Rounded down to tens. The previous value is kept until it is a whole step too low, or half a step too high. */
export function coarsePercent(percent: number, before: number | undefined): number {
  if (before !== undefined && percent < before + 10 && percent >= before - 5) return before;
  return Math.floor(percent / 10) * 10;
}

const mebibytes = (bytes: number): string => `${bytes / MI}Mi`;
const parseMebibytes = (text: string | number | undefined): number | undefined => {
  const found = /^(\d+)Mi$/.exec(String(text));
  return found ? Number(found[1]) * MI : undefined;
};

/**
 * A member with a ready Pod that did not respond keeps its previous role, unless another member is the leader now. A slow one
 * reports that it is a learner after its promotion: the member list decides, otherwise the status would keep it until the resync.
 */
function roleOf(
  o: ClusterFacts,
  m: MemberView,
  before: MemberEntry | undefined,
  leader: string | undefined,
): MemberEntry['role'] {
  const { self } = m;
  if (self && (entryOf(o, m)?.isLearner ?? self.isLearner)) return 'learner';
  if (self) return self.leader === self.id ? 'leader' : 'follower';
  if (!before || m.pod.is === 'absent' || !m.pod.ready) return 'unknown';
  return before.role === 'leader' && leader !== undefined && leader !== before.id ? 'follower' : before.role;
}

/** The smallest lag that is reported. Each power of ten costs a status write. */
const MIN_LAG = 1_000;

/** In raft entries, behind the member that has applied most. */
function lagOf(o: ClusterFacts, { self }: MemberView): { readonly lag?: number } {
  const furthest = Math.max(...o.members.map((each) => each.self?.applied ?? 0));
  const behind = self ? furthest - self.applied : 0;
  return behind < MIN_LAG ? {} : { lag: 10 ** Math.floor(Math.log10(behind)) };
}

/** Where it runs, and what it lacks of the spec. */
function placeOf(o: ClusterFacts, m: MemberView): Partial<MemberEntry> {
  const outdated = outdatedFields(o, m);
  return {
    ...(outdated.length > 0 && { outdated: [...outdated] }),
    ...present({ node: m.pod.is === 'present' ? m.pod.node : undefined, zone: m.zone }),
    ...lagOf(o, m),
  };
}

function figures(m: MemberView, self: SelfReport, before: MemberEntry | undefined): Partial<MemberEntry> {
  const size = coarseSize(self.databaseBytes, parseMebibytes(before?.databaseSize));
  return {
    version: self.version,
    ...(self.alarms.length > 0 && { alarms: [...self.alarms] }),
    databaseSize: mebibytes(size),
    quotaUsedPercent: coarsePercent((100 * self.databaseBytes) / quotaOf(m.object), before?.quotaUsedPercent),
  };
}

/** The previous figures are kept while the Pod is ready and only the response is late. */
function lastFigures(m: MemberView, before: MemberEntry | undefined): Partial<MemberEntry> {
  if (!before || m.pod.is === 'absent' || !m.pod.ready) return {};
  const { version, alarms, databaseSize, quotaUsedPercent } = before;
  return present({ version, alarms, databaseSize, quotaUsedPercent });
}

function statusOf(
  o: ClusterFacts,
  m: MemberView,
  before: MemberEntry | undefined,
  leader: string | undefined,
  now: string,
): MemberEntry {
  const role = roleOf(o, m, before, leader);
  const id = m.self?.id ?? m.object.status?.memberID;
  const version = m.object.status?.version;
  return {
    name: m.object.metadata.name ?? '',
    ...present({ id, version }),
    role,
    ...(m.self ? figures(m, m.self, before) : lastFigures(m, before)),
    ...placeOf(o, m),
    since: before?.role === role ? (before.since ?? now) : now,
  };
}

const lowest = (versions: readonly string[]): string | undefined =>
  [...versions].sort((a, b) => versionNumber(a) - versionNumber(b))[0];

/** By etcd's member list, or else as last recorded in `status.isVoter`. */
export const voterCount = (o: ClusterFacts): number =>
  entriesOf(o) ? votersOf(o).length : o.members.filter((m) => isVoter(m)).length;

/** A partitioned member reports an old leader for a while; the report with the highest term is right. */
const newestLeader = (o: ClusterFacts): string | undefined =>
  o.members
    .flatMap(({ self }) => (self?.leader === undefined ? [] : [{ leader: self.leader, term: self.term }]))
    .sort((a, b) => b.term - a.term)[0]?.leader;

/** A learner is not ready before it is promoted, so a slow one is probed only after that. */
function votesSince(o: ClusterFacts, m: MemberView): number {
  const known = o.cluster.status?.members?.find((each) => each.name === nameOf(m));
  return known?.role === 'learner' ? o.now : Date.parse(known?.since ?? '') || 0;
}

/**
 * Its etcd serves and votes, but the kubelet has not probed it yet or `status.isVoter` is not written yet. Without this, a growing
 * cluster would report a lost quorum.
 */
const hasJustStarted = (o: ClusterFacts, m: MemberView): boolean =>
  isNotBeingDeleted(m) &&
  entryOf(o, m)?.isLearner === false &&
  (isHealthy(o, m) || (!m.self && participates(o, m))) &&
  m.pod.is === 'present' &&
  (m.pod.ready || o.now - Math.max(m.pod.runningSince ?? 0, votesSince(o, m)) < READINESS_PROBED_WITHIN_MS);

/** The client Service routes to it: it is ready, or being deleted with a Pod that is still ready. */
export const isReached = (o: ClusterFacts, m: MemberView): boolean => {
  const leaves = !isNotBeingDeleted(m) && entryOf(o, m)?.isLearner === false && isHealthy(o, m);
  return isReadyVoter(m) || (leaves && m.pod.is === 'present' && m.pod.ready);
};

/** Voters that the client Service routes to, and those that have just started. */
export const servingVoters = (o: ClusterFacts): number =>
  o.members.filter((m) => isReached(o, m) || hasJustStarted(o, m)).length;

/** Changes of these fields alone may be coalesced: a lost or added member also changes `readyMembers` or a reason, and is written with it. */
export const MEMBERS_FIELDS = ['members', 'leader', 'version', 'clusterVersion', 'updatedMembers', 'quorum'] as const;
export type MembersStatus = Pick<EtcdClusterStatus, (typeof MEMBERS_FIELDS)[number]>;

/** Kept while the members disagree or do not respond. */
function clusterVersion(o: ClusterFacts): string | undefined {
  const minor = clusterMinor(o);
  return minor === undefined ? o.cluster.status?.clusterVersion : clusterVersionOf(minor);
}

/** Fields are absent if no member reported them in this reconcile. */
export function membersStatus(o: ClusterFacts, now: string): MembersStatus {
  const before = o.cluster.status?.members ?? [];
  const leaderId = newestLeader(o);
  const members = o.members.map((m) => {
    const known = before.find((b) => b.name === nameOf(m));
    return statusOf(o, m, known, leaderId, now);
  });
  const leader = members.find((m) => (leaderId === undefined ? m.role === 'leader' : m.id === leaderId))?.name;
  const version = lowest(members.flatMap((m) => m.version ?? []));
  const voters = voterCount(o);
  const [needed, healthy] = [quorumOf(voters), servingVoters(o)];
  return {
    ...(members.length > 0 && { members }),
    ...present({ leader, version, clusterVersion: clusterVersion(o) }),
    updatedMembers: o.members.filter((m) => outdatedFields(o, m).length === 0).length,
    ...(voters > 0 && { quorum: { needed, healthy, margin: healthy - needed } }),
  };
}
