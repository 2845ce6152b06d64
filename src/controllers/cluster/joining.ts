/** Members that join the cluster: their names, their progress, and how many more learners etcd accepts. */

import { memberName, memberNumber } from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { SLOW_JOIN_MS } from '../../domain/timing.ts';
import { nameIn } from './build.ts';
import type { EtcdChange } from './calls.ts';
import {
  createdAt,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  hasJoined,
  isLosingData,
  isLosingMemory,
  isLosingPvc,
  isNotBeingDeleted,
  type MemberView,
  memberOf,
  type Observed,
  participates,
} from './observed.ts';
import { healthyVoters, learnersOf, votersOf } from './quorum.ts';

/** How far beyond the recorded counter member numbers are recognised; fewer members are added between two writes of it. */
const MAX_UNRECORDED = 32;

/** The number that a member name was derived from; `undefined` for names that this operator did not choose. */
function numberOf(o: Observed, name: string): number | undefined {
  const last = (o.cluster.status?.membersNamed ?? 0) + MAX_UNRECORDED;
  const n = memberNumber(identity(o.cluster).name, identity(o.cluster).uid, name) ?? 0;
  return n > 0 && n <= last ? n : undefined;
}

/** The last member number in use: as recorded, or a later one in etcd's member list, which an earlier operator may have added. */
export const lastNumber = (o: Observed): number =>
  Math.max(o.cluster.status?.membersNamed ?? 0, ...(entriesOf(o) ?? []).map((e) => numberOf(o, nameIn(e)) ?? 0));

export const nextName = (o: Observed): string => {
  const { name: cluster, uid } = identity(o.cluster);
  return memberName(cluster, uid, lastNumber(o) + 1);
};

/** Added to etcd, but its EtcdMember is not created yet: its etcd has not started, so it has no name in the list. */
export const isAddedWithoutObject = (o: Observed, entry: EtcdMemberEntry): boolean =>
  entry.isLearner && entry.name === '' && !memberOf(o, entry) && numberOf(o, nameIn(entry)) !== undefined;

export const startedAt = (m: MemberView): number | undefined =>
  m.pod.is === 'present' ? (m.pod.runningSince ?? m.pod.startedAt) : undefined;
const ageMs = (o: Observed, m: MemberView): number => o.now - createdAt(m);

/** Members whose etcd neither responds nor participates yet. */
export const joining = (o: Observed): readonly MemberView[] =>
  o.members.filter(
    (m) => isNotBeingDeleted(m) && !hasJoined(m) && !m.self && !participates(o, m) && entryOf(o, m)?.isLearner === true,
  );

/** The lowest `--max-learners` of all voters. */
const maxLearners = (o: Observed): number =>
  Math.min(
    ...votersOf(o).map((entry) => {
      const pod = memberOf(o, entry)?.pod;
      return pod?.is === 'present' ? pod.maxLearners : 1;
    }),
  );

export const isStuck = (o: Observed, m: MemberView): boolean => ageMs(o, m) > SLOW_JOIN_MS;

const JOIN_CALLS: readonly string[] = ['addLearner', 'promote'] satisfies readonly EtcdChange['name'][];
/** etcd has refused to add or to promote a member in the last reconcile. */
export const isJoinRefused = (o: Observed): boolean =>
  o.memory.failures.some(({ call }) => call !== undefined && JOIN_CALLS.includes(call));

export const isFull = (o: Observed): boolean => learnersOf(o).length >= maxLearners(o);

export const isLeaving = (m: MemberView | undefined): boolean => m !== undefined && !isNotBeingDeleted(m);

/** A user has deleted all voters, or their PVCs. The data must not be deleted with the last of them: a replacement voter replicates it first. */
export const needsReplacementVoter = (o: Observed): boolean => {
  const voters = votersOf(o).map((entry) => memberOf(o, entry));
  return voters.length > 0 && voters.every((m) => m !== undefined && (isLeaving(m) || isLosingPvc(m)));
};

/** Members whose Pod is being deleted with its data, and that a quorum of the others can replace. */
export function losingMemory(o: Observed): readonly MemberView[] {
  const losing = o.members.filter(isLosingMemory);
  const staying = healthyVoters(o).filter((entry) => !losing.some((m) => entryOf(o, m) === entry));
  return staying.length >= quorumOf(votersOf(o).length) ? losing : [];
}

/** The maximum number of members in etcd's member list, without those of users. A member that loses its data is removed after its replacement votes. */
export function maxMembers(o: Observed): number {
  if (needsReplacementVoter(o)) return votersOf(o).length + 1;
  return desired(o) + (o.members.some(isLosingPvc) || losingMemory(o).length > 0 ? 1 : 0);
}

/** The replacement of a member that loses its data is still to be added, or does not vote yet: until then no member is surplus. */
export function waitsForReplacement(o: Observed): boolean {
  const kept = o.members.filter(isNotBeingDeleted);
  if (!kept.some(isLosingData) || kept.length > maxMembers(o)) return false;
  return needsReplacementVoter(o) || kept.some((m) => entryOf(o, m)?.isLearner !== false);
}
