/** Health in one sentence. The rows are in order: the first that applies is the answer. */
import type { Condition } from '../../api/conditions.ts';
import { findCondition } from '../../domain/conditions.ts';
import { isBeingDeleted } from '../../domain/ownership.ts';
import type { ClusterFacts } from './facts.ts';
import { type Quorum, quorum, reportOf } from './quorum.ts';

export type Health =
  /** All members are healthy. */
  | 'healthy'
  /** A quorum serves, and the operator changes something. */
  | 'progressing'
  | 'paused'
  /** Neither the members nor the operator could be relied on. */
  | 'unknown'
  /** A quorum serves, and something is wrong. */
  | 'degraded'
  /** The cluster does not serve. */
  | 'unavailable';

export interface Judgement {
  readonly health: Health;
  /** One sentence. */
  readonly summary: string;
}

type Row = (facts: ClusterFacts, quorum: Quorum | undefined) => Judgement | undefined;

const judged = (health: Health, summary: string): Judgement => ({ health, summary });
const found = ({ cluster }: ClusterFacts, type: string): Condition | undefined =>
  findCondition(cluster.status?.conditions, type);
const are = (count: number): string => (count === 1 ? 'is' : 'are');

const beingDeleted: Row = ({ cluster }) =>
  isBeingDeleted(cluster) ? judged('unavailable', 'The EtcdCluster is being deleted.') : undefined;

/** Before it has a status, no operator has reconciled it. */
const unseen: Row = ({ cluster }) =>
  cluster.status === undefined
    ? judged('unknown', 'The operator has not reconciled this EtcdCluster yet: check that it runs.')
    : undefined;

const paused: Row = (facts) => {
  const available = found(facts, 'Available');
  return available?.reason === 'Paused' ? judged('paused', sentence(available.message)) : undefined;
};

/** A member that follows a leader proves a quorum, although others did not respond to this command. */
const followsLeader = (facts: ClusterFacts): boolean =>
  facts.members.some((member) => reportOf(member)?.leader !== undefined);

const quorumLost: Row = (facts, votes) =>
  votes?.source === 'etcd' && votes.margin < 0 && !followsLeader(facts)
    ? judged(
        'unavailable',
        `Quorum lost: ${votes.healthy} of ${votes.voters} voters ${are(votes.healthy)} healthy, and ${votes.needed} are needed. etcd serves neither writes nor linearizable reads.`,
      )
    : undefined;

const unavailable: Row = (facts) => {
  const available = found(facts, 'Available');
  if (available?.status === 'True') return undefined;
  // The condition may be seconds old: members that follow a leader now serve.
  if (available?.reason === 'QuorumLost' && followsLeader(facts)) return undefined;
  return judged('unavailable', sentence(available?.message ?? 'The operator has not reported whether it is available'));
};

/** No member responded, although the operator reports a quorum: the plugin cannot tell which is right. */
const unreached: Row = (facts) => {
  const failed = facts.members.flatMap(({ answer }) => (answer.is === 'failed' ? [answer.message] : []));
  return failed.length > 0 && failed.length === facts.members.length
    ? judged(
        'unknown',
        `The operator reports that a quorum is available, but no member responded to this command: ${failed[0]}.`,
      )
    : undefined;
};

const noSpace: Row = ({ members }) => {
  const full = members.filter((member) => reportOf(member)?.alarms.includes('NOSPACE'));
  return full.length === 0
    ? undefined
    : judged(
        'degraded',
        `etcd rejects writes: the database of ${full.map(({ object }) => object.metadata.name).join(', ')} has reached its quota (NOSPACE). Delete keys, then run: kubectl etcd compact, and kubectl etcd defrag, which disarms the alarm when there is room.`,
      );
};

const degraded: Row = (facts) => {
  const condition = found(facts, 'Degraded');
  return condition?.status === 'True' ? judged('degraded', sentence(condition.message)) : undefined;
};

const unhealthyVoters: Row = (_, votes) => {
  if (votes?.source !== 'etcd' || votes.healthy === votes.voters) return undefined;
  const missing = votes.voters - votes.healthy;
  return judged(
    'degraded',
    `A quorum serves, and ${missing} of ${votes.voters} voters ${are(missing)} not healthy: ${mayFail(votes)}.`,
  );
};

/** Of `Progressing`: what the spec asks for is not applied before a user has acted. */
const STUCK: readonly string[] = [
  'RolloutFailed',
  'DeadlineExceeded',
  'ReplacementsExhausted',
  'ReplacementRateLimited',
  'MembershipChangeRefused',
  'ImageNotAllowed',
  'OperatorImageNotConfigured',
  'ReferenceNotPermitted',
  'NameConflict',
  'SecretUnreadable',
  'ReadFailed',
];

/** All voters are healthy, and the cluster is not what its spec says. */
const stuck: Row = (facts) => {
  const condition = found(facts, 'Progressing');
  return condition?.status === 'False' && STUCK.includes(condition.reason)
    ? judged(
        'degraded',
        sentence(`A quorum serves, and the operator is stuck (${condition.reason}): ${condition.message}`),
      )
    : undefined;
};

const progressing: Row = (facts) => {
  const condition = found(facts, 'Progressing');
  return condition?.status === 'True' ? judged('progressing', sentence(condition.message)) : undefined;
};

export const mayFail = ({ margin }: Quorum): string =>
  margin <= 0 ? 'no further voter may fail' : `${margin} more may fail without an outage`;

const healthy: Row = (facts, votes) => {
  if (!votes) return judged('healthy', 'The operator reports that all members are ready.');
  const members = votes.voters === 1 ? 'The only voter is' : `All ${votes.voters} voters are`;
  const by = votes.source === 'operator' ? ', as the operator reports' : '';
  const learners = facts.members.filter((member) => reportOf(member)?.isLearner).length;
  const joining = learners === 0 ? '' : ` ${learners} more ${are(learners)} joining.`;
  return judged('healthy', `${members} healthy${by}: ${mayFail(votes)}.${joining}`);
};

const ROWS: readonly Row[] = [
  beingDeleted,
  unseen,
  paused,
  // What etcd responds now comes before what the operator reported some seconds ago.
  quorumLost,
  unavailable,
  unreached,
  // All members reject writes: worse than one member that is down.
  noSpace,
  degraded,
  unhealthyVoters,
  stuck,
  progressing,
  healthy,
];

export function judge(facts: ClusterFacts): Judgement {
  const votes = quorum(facts);
  for (const row of ROWS) {
    const judgement = row(facts, votes);
    if (judgement) return judgement;
  }
  return judged('unknown', 'Nothing is known about this cluster.');
}

/** Messages of conditions start in lower case and have no full stop. A name, such as `etcd` or `db-x2k4p`, keeps its letters. */
export const sentence = (message: string): string => {
  const text = message.trim();
  const isWord = /^[a-z]+\b(?![-.])/.test(text) && !text.startsWith('etcd');
  const first = isWord ? text.slice(0, 1).toUpperCase() : text.slice(0, 1);
  return `${first}${text.slice(1)}${text === '' || /[.!?]$/.test(text) ? '' : '.'}`;
};

/** What `--check` accepts: the cluster serves with all its voters, or is being changed as planned. */
export const isGood = (health: Health): boolean => health === 'healthy' || health === 'progressing';
