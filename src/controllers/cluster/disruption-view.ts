/** What the disruption check of `domain/disruption.ts` needs to know, from the observed state. */
import {
  type Blocked,
  blockedBy as check,
  type Disruption,
  type JoinerView,
  type QuorumView,
} from '../../domain/disruption.ts';
import { podBlockedBy } from '../../domain/member-pod.ts';
import { present } from '../../lib/present.ts';
import { loads } from './credentials/state.ts';
import { busyWith, isBeingDefragmented, streamingFrom, waitsForOthers } from './defragmentation.ts';
import { ownEntries } from './foreign-members.ts';
import {
  createdAt,
  desired,
  type EtcdMemberEntry,
  entryOf,
  evidence,
  hasJoined,
  isInMemory,
  isNotBeingDeleted,
  isReadyVoter,
  type MemberView,
  memberOf,
  nameOf,
  type Observed,
  type Successor,
} from './observed.ts';
import { isCorrupt, isHealthy, leaderOf, votersOf } from './quorum.ts';
import { replacementBackOff } from './replacement-back-off.ts';
import { rateLimitedBy } from './replacement-rate.ts';
import { isEvidenceSuspended } from './rollout/failure.ts';
import { successorOf as memberAfterRestart } from './rollout/update.ts';

type Facts = Omit<JoinerView, 'id' | 'neverStartedForMs'>;

/** etcd lists it, and it has no EtcdMember. */
const withoutObject = (entry: EtcdMemberEntry): Facts => ({
  name: entry.name || entry.peerURLs.join(),
  healthy: false,
  responds: false,
  podReady: false,
  readyVoter: false,
  object: 'missing',
  failed: false,
  data: 'missing',
  policyRecorded: true,
});

const successorOf = ({ successors = [] }: Observed, m: MemberView): Successor | undefined =>
  successors.find(({ member }) => member === nameOf(m));

/** Members carry the deletionPolicy for their PVCs: an EtcdMember that is deleted before it has it loses its PVC. */
export const isPolicyRecorded = (o: Observed, m: MemberView): boolean =>
  o.cluster.spec.deletionPolicy !== 'Retain' || m.object.spec.deletionPolicy === 'Retain';

/** Of one that has not started yet, how long its Pod exists. When the cache shows a terminating Pod, the etcd of the next one may run already. */
const runningFor = (o: Observed, { pod }: MemberView): { readonly runningForMs?: number } => {
  const since = pod.is === 'present' ? (pod.endsBy ?? pod.runningSince ?? pod.createdAt) : undefined;
  return since === undefined ? {} : { runningForMs: o.now - since };
};

function factsOf(o: Observed, m: MemberView): Facts {
  return {
    name: nameOf(m),
    healthy: isHealthy(o, m) && !isBeingDefragmented(o, m),
    podReady: m.pod.is === 'present' && m.pod.terminating !== true && m.pod.ready,
    readyVoter: isReadyVoter(m),
    responds: m.self !== undefined || m.answersAs !== undefined,
    object: isNotBeingDeleted(m) ? 'present' : 'terminating',
    failed: (evidence(m) !== undefined && !isEvidenceSuspended(o, m)) || isCorrupt(o, m),
    data: isInMemory(m) ? 'memory' : (m.pvc ?? 'missing'),
    policyRecorded: isPolicyRecorded(o, m),
    mountBlockedBy: o.credentials.recreate.blockedBy,
    successionBlockedBy: o.credentials.replace.blockedBy,
    podBlockedBy: podBlockedBy(memberAfterRestart(o, m), o.images, o.cluster)?.message ?? successorOf(o, m)?.refusedBy,
    peersExpired: o.credentials.expired.some((bundle) => bundle.port === 'peer' && loads(m.pod, bundle)),
    ...present({ unreadyForMs: m.unreadyForMs }),
    ...runningFor(o, m),
    backOff: replacementBackOff(o, m),
    rateLimit: rateLimitedBy(o, m),
    busy: busyWith(o, m),
    streaming: streamingFrom(o, m),
    fleet: waitsForOthers(o),
  };
}

function listed(o: Observed, entry: EtcdMemberEntry): Facts & { readonly id: string } {
  const m = memberOf(o, entry);
  return { id: entry.id, ...(m ? factsOf(o, m) : withoutObject(entry)) };
}

/** Its etcd has not started for the first time: it has no name in etcd's member list, and no data. */
function waiting(o: Observed, m: MemberView | undefined): Pick<JoinerView, 'neverStartedForMs'> {
  const started = !m || hasJoined(m) || m.self !== undefined || (entryOf(o, m)?.name ?? '') !== '';
  return started || !isNotBeingDeleted(m) ? {} : { neverStartedForMs: o.now - createdAt(m) };
}

const ownLearners = (o: Observed): readonly EtcdMemberEntry[] => ownEntries(o).filter(({ isLearner }) => isLearner);

export const quorumView = (o: Observed): QuorumView => ({
  desired: desired(o),
  leader: leaderOf(o),
  voters: votersOf(o).map((entry) => listed(o, entry)),
  joiners: [
    // A learner of a user has no vote, and the operator restarts members without waiting for it.
    ...ownLearners(o).map((entry) => ({ ...listed(o, entry), ...waiting(o, memberOf(o, entry)) })),
    ...o.members.filter((m) => !entryOf(o, m)).map((m) => ({ ...factsOf(o, m), ...waiting(o, m) })),
  ],
});

/** Why this member may not be disrupted now; `undefined` when it may. */
export const blockedBy = (o: Observed, id: string | undefined, kind: Disruption): Blocked | undefined =>
  check(quorumView(o), id ?? '', kind);
