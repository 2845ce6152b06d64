/**
 * The disruption check: why a member may not be disrupted now. Every removal, replacement and restart asks here, so that no two
 * of them take voters away at the same time. A new kind of disruption is a column of REQUIREMENTS, a new reason is a cell.
 */
import { quorumOf } from './quorum.ts';
import { NEVER_STARTED_MS, READINESS_PROBED_WITHIN_MS } from './timing.ts';

export type Disruption =
  /** etcd removes a member whose EtcdMember is being deleted or does not exist. */
  | 'remove'
  /** The EtcdMember is deleted, because fewer members are wanted. */
  | 'scaleDown'
  /** The EtcdMember is deleted, because the member has failed. */
  | 'replace'
  /** The Pod is deleted and comes back with its data; data in memory is replaced with its EtcdMember. */
  | 'restart'
  /** A restart for new peer connections, while etcd refuses the membership change that would end the waiting for other members. */
  | 'reconnect'
  /** A restart that loads another CA bundle, of a member that no new connection reaches any more: its CAs or certificates have expired. */
  | 'restartExpired'
  /** The Pod of a member that takes no part is replaced by one with another template. */
  | 'remake'
  /**
   * The EtcdMember of a member that takes no part is deleted, and another one with another template joins: a member whose data in
   * memory would be lost with its Pod, or a learner, which has no data that the voters lack.
   */
  | 'rejoin'
  /** etcd rewrites the database of a member, which serves nothing meanwhile. */
  | 'defragment'
  /** The EtcdMember of a learner that never started is deleted. */
  | 'discardJoiner';

export interface Blocked {
  /** CamelCase, as in a condition. */
  readonly reason: string;
  readonly message: string;
}

interface MemberFacts {
  readonly name: string;
  /** Responds with its own id, follows a leader, lags little, is not corrupt and not being defragmented. */
  readonly healthy: boolean;
  /** Its etcd responds, healthy or not. */
  readonly responds: boolean;
  /** Its Pod is ready and not being deleted. */
  readonly podReady: boolean;
  /** Its EtcdMember is recorded as a ready voter and not being deleted. */
  readonly readyVoter: boolean;
  /** Its EtcdMember. */
  readonly object: 'present' | 'terminating' | 'missing';
  /** It has failure evidence, or its data differs from that of a quorum. */
  readonly failed: boolean;
  readonly data: 'present' | 'terminating' | 'missing' | 'memory';
  /** The EtcdMember has the deletionPolicy of its cluster. Deleted before that, its PVC would be deleted against the policy. */
  readonly policyRecorded: boolean;
  /** Why a new Pod of it could not mount its Secrets. */
  readonly mountBlockedBy?: string | undefined;
  /** Why no other member could join in its place. */
  readonly successionBlockedBy?: string | undefined;
  /** Why a new Pod of it would not be created. */
  readonly podBlockedBy?: string | undefined;
  /** Its peers refuse new connections of it: the CAs or certificates of its peer port have expired. */
  readonly peersExpired?: boolean;
  /** How long the operator has observed that its Pod is not ready, since its etcd started and its node was last unreachable. */
  readonly unreadyForMs?: number;
  /** How long its etcd has been running; of one that has not started yet, how long its Pod exists. */
  readonly runningForMs?: number;
  /** Why it is not replaced yet, after replacements that failed. */
  readonly backOff?: string | undefined;
  /** Why it is not replaced yet, after replacements in other clusters. */
  readonly rateLimit?: string | undefined;
  /** What it is busy with: it serves nothing, and will again by itself. It must be left alone until then, and is not lost. */
  readonly busy?: string | undefined;
  /** A snapshot streams from it, or may do so. */
  readonly streaming?: string | undefined;
  /** Why no defragmentation of this cluster starts now: other clusters have all places. */
  readonly fleet?: string | undefined;
}

export interface VoterView extends MemberFacts {
  readonly id: string;
}

/** A learner, or an EtcdMember that etcd does not list. */
export interface JoinerView extends MemberFacts {
  readonly id?: string;
  /** How long its etcd has not started for the first time; `undefined` once it has. */
  readonly neverStartedForMs?: number;
}

export interface QuorumView {
  /** The number of members that the spec asks for. */
  readonly desired: number;
  /** The leader that all healthy voters agree on. */
  readonly leader: string | undefined;
  readonly voters: readonly VoterView[];
  readonly joiners: readonly JoinerView[];
}

type Member = VoterView | JoinerView;
type Requirement = (quorum: QuorumView, member: Member) => Blocked | undefined;

/** A learner has no vote, and no copy of the data that the others lack. */
const ofVoter =
  (requirement: Requirement): Requirement =>
  (quorum, member) =>
    quorum.voters.some((voter) => voter === member) ? requirement(quorum, member) : undefined;

const othersThan = (quorum: QuorumView, member: Member): readonly VoterView[] =>
  quorum.voters.filter((voter) => voter !== member);
const names = (members: readonly Member[]): string => members.map(({ name }) => name).join(', ');

const leaderAgreed: Requirement = (quorum) =>
  quorum.leader === undefined ? { reason: 'NoLeader', message: 'the members do not agree on a leader' } : undefined;

/** For a limited time: what it is busy with has a time limit, and a member with failure evidence is not busy. */
const notBusy: Requirement = (_, { name, busy }) =>
  busy === undefined ? undefined : { reason: 'MemberBusy', message: `${name} ${busy}` };

/** Before a voter is disrupted, all others must be healthy, so that they have every acknowledged write. */
const othersHealthy: Requirement = (quorum, member) => {
  const unhealthy = othersThan(quorum, member).filter(({ healthy }) => !healthy);
  if (unhealthy.length === 0) return undefined;
  const message = `the quorum needs ${names(unhealthy)}, which ${unhealthy.length === 1 ? 'is' : 'are'} not healthy`;
  return { reason: 'QuorumAtRisk', message };
};

/** If the member is lost itself, a quorum of the others is enough: otherwise two lost members of five would block each other for ever. */
const othersKeepQuorum: Requirement = (quorum, member) => {
  const others = othersThan(quorum, member);
  const lost = (member.failed || member.object === 'terminating') && !member.healthy;
  return lost && others.filter(({ healthy }) => healthy).length >= quorumOf(others.length)
    ? undefined
    : othersHealthy(quorum, member);
};

/**
 * The data must not be deleted with the last voter, nor with the last one whose PVC stays. An unhealthy member serves no data,
 * so its removal loses none.
 */
const anotherVoterStays: Requirement = (quorum, member) =>
  !member.healthy ||
  othersThan(quorum, member).some(({ object, data }) => object === 'present' && data !== 'terminating')
    ? undefined
    : { reason: 'LastVoter', message: 'all other voters, or their PersistentVolumeClaims, are being deleted' };

const hasFailed: Requirement = (_, member) =>
  member.failed && !member.healthy
    ? undefined
    : { reason: 'NoFailureEvidence', message: `${member.name} may still recover` };

const backOffOver: Requirement = (_, { backOff }) =>
  backOff === undefined ? undefined : { reason: 'ReplacementBackOff', message: backOff };

export const RATE_LIMITED = 'ReplacementRateLimited';
const withinRate: Requirement = (_, { rateLimit }) =>
  rateLimit === undefined ? undefined : { reason: RATE_LIMITED, message: rateLimit };

const noneUnready = (unready: readonly Member[]): Blocked | undefined =>
  unready.length === 0
    ? undefined
    : { reason: 'MembersNotReady', message: `${names(unready)} must be ready and healthy first` };

/** The previous member must serve again before the next one is restarted. */
const podsReady: Requirement = ({ voters }) =>
  noneUnready(voters.filter(({ podReady, healthy }) => !podReady || !healthy));

/** Also as recorded in its EtcdMember, which the cache may show later; and no learner is catching up. */
const membersReady: Requirement = ({ voters, joiners }) =>
  noneUnready([
    ...voters.filter(({ podReady, readyVoter, healthy }) => !podReady || !readyVoter || !healthy),
    ...joiners.filter(({ neverStartedForMs = 0 }) => neverStartedForMs < NEVER_STARTED_MS),
  ]);

/** No member is added or removed now. While a joiner finds no node, none is added, although fewer members vote than are desired. */
const membersComplete: Requirement = ({ desired, voters, joiners }) => {
  const members = voters.length + joiners.length;
  return members === desired || (members < desired && joiners.length > 0)
    ? undefined
    : { reason: 'Scaling', message: 'the number of members is being changed' };
};

/** Two voters of two have an outage in any case. Two of three do not, once the third has joined. */
const quorumWithoutIt: Requirement = ({ voters, joiners }) =>
  joiners.length === 0 || voters.length - 1 >= quorumOf(voters.length)
    ? undefined
    : { reason: 'QuorumAtRisk', message: `until ${names(joiners)} has joined, the others are no quorum without it` };

const terminatingPvc = (name: string): Blocked => ({
  reason: 'PVCTerminating',
  message: `the PersistentVolumeClaim of ${name} is being deleted, and its data would be lost with the Pod`,
});
export const DATA_IN_MEMORY = 'DataInMemory';
const inMemory = (name: string, remedy = ''): Blocked => ({
  reason: DATA_IN_MEMORY,
  message: `${name} has its data in memory only, which is lost when it restarts${remedy}`,
});

/** Data in memory is lost with its Pod: such a member is replaced, and the others must keep quorum without it. */
const MIN_VOTERS_IN_MEMORY = 3;
const dataSurvives: Requirement = ({ voters }, { name, data }) => {
  if (data === 'memory' && voters.length < MIN_VOTERS_IN_MEMORY)
    return inMemory(name, `: set replicas to ${MIN_VOTERS_IN_MEMORY}, so that other members have it`);
  return data === 'terminating' ? terminatingPvc(name) : undefined;
};

const dataOnVolume: Requirement = (_, { name, data }) => {
  if (data === 'memory') return inMemory(name);
  if (data === 'terminating') return terminatingPvc(name);
  return data === 'present'
    ? undefined
    : { reason: 'PVCMissing', message: `the PersistentVolumeClaim of ${name} is not found` };
};

/**
 * Connections outlive the certificates that they were opened with: a member whose Pod is ready may still serve. While new ones
 * between peers are refused, it restarts only when all others are healthy, which then have the new CA bundle: otherwise it would
 * not find back to them. While new ones are accepted, it restarts when all others are ready.
 */
const noLongerServes: Requirement = ({ voters, joiners }, member) => {
  const started = [...voters, ...joiners.filter(({ neverStartedForMs }) => neverStartedForMs === undefined)];
  // It may become part of a quorum with one that has just started or was cut off, before its readiness is reported.
  const fresh = started.find(
    ({ runningForMs = Infinity, unreadyForMs = Infinity }) =>
      Math.min(runningForMs, unreadyForMs) < READINESS_PROBED_WITHIN_MS,
  );
  if (!member.podReady && member.peersExpired !== true && fresh)
    return {
      reason: 'ReadinessUnknown',
      message: `${fresh.name} has just started or was cut off, and may be part of a quorum already`,
    };
  if (!member.podReady) return undefined;
  if (member.peersExpired && started.some((other) => other !== member && !other.healthy))
    return {
      reason: 'StillServing',
      message: `the certificates of its peer port have expired, but ${member.name} is ready: it may serve over connections that were opened before, and would not find back to the others. It is restarted when it is not ready any more; to end the wait, delete the Pods of all members`,
    };
  return noneUnready(started.filter(({ podReady }) => !podReady));
};

/**
 * Its restart costs nothing: it serves no client, and the quorum does without it. An etcd that responds without a leader
 * may be needed as soon as another one comes back; so may one that has just started.
 */
const takesNoPart: Requirement = (quorum, member) => {
  const { voters, joiners } = quorum;
  if (member.podReady || member.healthy)
    return { reason: 'StillServing', message: `${member.name} is ready, and is restarted in turn` };
  const others = othersThan(quorum, member).filter(({ healthy }) => healthy).length;
  if (member.responds && others < quorumOf(voters.length))
    return { reason: 'QuorumAtRisk', message: `${member.name} responds, and the others are no quorum without it` };
  const fresh = [...voters, ...joiners].find(
    ({ podReady, runningForMs = Infinity, unreadyForMs = Infinity }) =>
      !podReady && Math.min(runningForMs, unreadyForMs) < READINESS_PROBED_WITHIN_MS,
  );
  return fresh && { reason: 'ReadinessUnknown', message: `${fresh.name} has just started, and may become ready` };
};

/** A member that responds may become part of the quorum again, and its data is kept as long as its Pod. */
const doesNotRespond: Requirement = (_, { name, responds, healthy, podReady }) =>
  responds || healthy || podReady
    ? { reason: 'StillServing', message: `${name} responds, and may become ready` }
    : undefined;

/** A volume outlives the Pod: only the Pod of such a voter is replaced. */
const hasNoVolume: Requirement = (_, { name, data }) =>
  data === 'memory'
    ? undefined
    : { reason: 'DataOnVolume', message: `${name} has its data on a volume, and gets another Pod instead` };

/**
 * Everything that was acknowledged is on a quorum of the voters. Those must stay: a member that is being deleted, or whose Pod is,
 * is not there any more when the next one joins.
 */
const othersStayQuorum: Requirement = (quorum, member) => {
  const { voters } = quorum;
  const staying = othersThan(quorum, member).filter(
    ({ healthy, podReady, object, data }) => healthy && podReady && object === 'present' && data !== 'terminating',
  );
  const needed = quorumOf(voters.length);
  if (staying.length >= needed) return undefined;
  const message = `${staying.length} of the other voters are healthy and stay, and ${needed} are needed: the last copy of the data may be in the memory of ${member.name}`;
  return { reason: 'QuorumAtRisk', message };
};

const dataStays: Requirement = (_, { name, data }) => (data === 'terminating' ? terminatingPvc(name) : undefined);

/** etcd would wait for the end of the stream, which may take an hour, and accept no writes meanwhile. */
const notStreaming: Requirement = (_, { streaming }) =>
  streaming === undefined ? undefined : { reason: 'SnapshotRunning', message: streaming };

const withinFleet: Requirement = (_, { fleet }) =>
  fleet === undefined ? undefined : { reason: 'FleetBusy', message: fleet };

const podAllowed: Requirement = (_, { podBlockedBy }) =>
  podBlockedBy === undefined ? undefined : { reason: 'PodNotAllowed', message: podBlockedBy };
const secretsMountable: Requirement = (_, { mountBlockedBy }) =>
  mountBlockedBy === undefined ? undefined : { reason: 'SecretsMissing', message: mountBlockedBy };

/** It may come back meanwhile, and its volume would be deleted. */
const anotherCanJoin: Requirement = (_, { successionBlockedBy }) =>
  successionBlockedBy === undefined ? undefined : { reason: 'NameMissing', message: successionBlockedBy };

const policyRecorded: Requirement = (_, member) =>
  member.policyRecorded
    ? undefined
    : {
        reason: 'DeletionPolicyPending',
        message: `EtcdMember ${member.name} does not have the deletionPolicy of its cluster yet`,
      };
const policyRecordedInMemory: Requirement = (quorum, member) =>
  member.data === 'memory' ? policyRecorded(quorum, member) : undefined;

const neverStarted: Requirement = ({ joiners }, member) =>
  joiners.some((joiner) => joiner === member && joiner.neverStartedForMs !== undefined)
    ? undefined
    : { reason: 'Joined', message: `${member.name} has started and may have data` };

/** In this order: the first requirement that is not met is reported. */
const REQUIREMENTS: Readonly<Record<Disruption, readonly Requirement[]>> = {
  remove: [notBusy, leaderAgreed, ofVoter(othersKeepQuorum), ofVoter(anotherVoterStays)],
  scaleDown: [notBusy, leaderAgreed, ofVoter(othersKeepQuorum), ofVoter(anotherVoterStays), policyRecorded],
  replace: [
    notBusy,
    leaderAgreed,
    ofVoter(othersKeepQuorum),
    hasFailed,
    anotherCanJoin,
    backOffOver,
    withinRate,
    policyRecorded,
  ],
  restart: [
    notBusy,
    membersReady,
    membersComplete,
    ofVoter(quorumWithoutIt),
    ofVoter(dataSurvives),
    leaderAgreed,
    secretsMountable,
    ofVoter(policyRecordedInMemory),
    podAllowed,
  ],
  reconnect: [notBusy, dataOnVolume, secretsMountable, leaderAgreed, podsReady, podAllowed],
  restartExpired: [notBusy, dataOnVolume, secretsMountable, noLongerServes, podAllowed],
  remake: [notBusy, dataOnVolume, secretsMountable, takesNoPart, podAllowed],
  rejoin: [
    notBusy,
    leaderAgreed,
    ofVoter(hasNoVolume),
    doesNotRespond,
    takesNoPart,
    othersStayQuorum,
    secretsMountable,
    policyRecorded,
    podAllowed,
  ],
  defragment: [notBusy, membersReady, membersComplete, leaderAgreed, dataStays, notStreaming, withinFleet],
  discardJoiner: [notBusy, leaderAgreed, neverStarted, policyRecorded],
};

/** Of members that may not respond. */
const BY_NAME: readonly Disruption[] = ['restartExpired', 'remake', 'rejoin'];

/** The first reason why the member with this id may not be disrupted now; `undefined` when it may. By name where etcd may not respond. */
export function blockedBy(quorum: QuorumView, id: string, kind: Disruption): Blocked | undefined {
  const byName = BY_NAME.includes(kind);
  const member = [...quorum.voters, ...quorum.joiners].find((each) => (byName ? each.name : each.id) === id);
  if (!member)
    return { reason: 'NotListed', message: `etcd does not ${quorum.voters.length === 0 ? 'respond' : 'list it'}` };
  for (const requirement of REQUIREMENTS[kind]) {
    const blocked = requirement(quorum, member);
    if (blocked) return blocked;
  }
  return undefined;
}
