/** Members on their way into the cluster: their names, how far they are, and how many more etcd takes. */

import { memberName, memberNumber } from '../../api/names.ts';
import { identity } from '../../domain/ownership.ts';
import { nameIn } from './build.ts';
import { learnersOf, votersOf } from './disruption.ts';
import {
  createdAt,
  desired,
  type EtcdMemberEntry,
  entriesOf,
  entryOf,
  hasJoined,
  isNotBeingDeleted,
  type MemberView,
  memberOf,
  type Observed,
  participates,
} from './observed.ts';

/** Numbers of names from here on are looked at; more members were never added between two records of the counter. */
const AHEAD = 32;

/** The number that a name was made from, if it is one of ours. */
function numberOf(o: Observed, name: string): number | undefined {
  const last = (o.cluster.status?.membersNamed ?? 0) + AHEAD;
  const n = memberNumber(identity(o.cluster).name, identity(o.cluster).uid, name) ?? 0;
  return n > 0 && n <= last ? n : undefined;
}

/** The last number that was given out: what is recorded, or what etcd was told after that, be it by chance by an earlier operator. */
export const lastNumber = (o: Observed): number =>
  Math.max(o.cluster.status?.membersNamed ?? 0, ...(entriesOf(o) ?? []).map((e) => numberOf(o, nameIn(e)) ?? 0));

export const nextName = (o: Observed): string => {
  const { name: cluster, uid } = identity(o.cluster);
  return memberName(cluster, uid, lastNumber(o) + 1);
};

/** Added, and nobody was made for it yet. It has not started: there is no name, and nothing that it could have said. */
export const isAddedWithoutObject = (o: Observed, entry: EtcdMemberEntry): boolean =>
  entry.isLearner && entry.name === '' && !memberOf(o, entry) && numberOf(o, nameIn(entry)) !== undefined;

export const startedAt = (m: MemberView): number | undefined =>
  m.pod.is === 'present' ? (m.pod.runningSince ?? m.pod.startedAt) : undefined;
export const ageMs = (o: Observed, m: MemberView): number => o.now - createdAt(m);

/** Made, and its etcd neither answers nor takes part yet. */
export const joining = (o: Observed): readonly MemberView[] =>
  o.members.filter(
    (m) => isNotBeingDeleted(m) && !hasJoined(m) && !m.self && !participates(o, m) && entryOf(o, m)?.isLearner === true,
  );

/** How many learners every member that votes lets the cluster have. */
const maxLearners = (o: Observed): number =>
  Math.min(
    ...votersOf(o).map((entry) => {
      const pod = memberOf(o, entry)?.pod;
      return pod?.is === 'present' ? pod.maxLearners : 1;
    }),
  );

/** Joining members take seconds to start; one whose Pod finds no node may take for ever, and nobody can be added meanwhile. */
export const SLOW_JOIN_MS = 15_000;
export const isStuck = (o: Observed, m: MemberView): boolean => ageMs(o, m) > SLOW_JOIN_MS;

export const isFull = (o: Observed): boolean => learnersOf(o).length >= maxLearners(o);

export const isLeaving = (m: MemberView | undefined): boolean => m !== undefined && !isNotBeingDeleted(m);

/** Somebody deleted all that vote. What they have must not go with the last of them: a newcomer takes over first. */
export const needsReplacementVoter = (o: Observed): boolean =>
  votersOf(o).length > 0 && votersOf(o).every((entry) => isLeaving(memberOf(o, entry)));

/** So many may be on etcd's list. */
export const maxMembers = (o: Observed): number => (needsReplacementVoter(o) ? votersOf(o).length + 1 : desired(o));
