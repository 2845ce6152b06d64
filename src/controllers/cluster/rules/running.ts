/** Rules for a bootstrapped cluster. */
import { RESYNC_MS, UNHEALTHY_RESYNC_MS } from '../../../domain/timing.ts';
import { independent } from '../../../runtime/plan.ts';
import { blockedBy } from '../disruption-view.ts';
import { goesAway, transferFirst } from '../etcd-calls.ts';
import {
  type ClusterDecision,
  type Contributed,
  clusterIdMismatch,
  type Decided,
  desired,
  entriesOf,
  entryOf,
  etcdError,
  isNotBeingDeleted,
  isReadyVoter,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
} from '../observed.ts';
import { expired } from '../quarantine.ts';
import { isHealthy, leaderOf } from '../quorum.ts';
import { waitingLosses } from '../replacement.ts';
import { voterSteps } from '../voters.ts';

/** An IP address can be reused by another cluster, whose responses must not be taken for this cluster's. */
export const otherClusterId = (o: Observed): Decided => {
  const message = clusterIdMismatch(o);
  return message === undefined ? undefined : { message, requeueAfterMs: UNHEALTHY_RESYNC_MS };
};

export const recordVoters = (o: Observed): Contributed => independent('the voters have changed', voterSteps(o));

/** A transfer that etcd refuses must not hold up the changes of membership that may be the reason for the refusal. */
const MAX_ATTEMPTS = 2;

/**
 * etcd itself hands over as the last thing before it exits: it first waits for open streams, up to 7 s with the default election
 * timeout, and leads without accepting connections. The operator does it as soon as the Pod is deleted or its node cordoned.
 */
export function handOver(o: Observed): Decided {
  const leader = leaderOf(o);
  const m = o.members.find((each) => leader !== undefined && entryOf(o, each)?.id === leader);
  const because = m?.self && goesAway(m);
  if (!m || because === undefined || hasFailed(o)) return undefined;
  return transferFirst(o, leader, `${nameOf(m)} leads, and ${because}`, { toOneThatStays: true });
}

const hasFailed = ({ memory }: Observed): boolean =>
  memory.failures.some(({ call, times }) => call === 'moveLeader' && times >= MAX_ATTEMPTS);

export const expireVolumes = (o: Observed): Decided => expired(o);

const isGood = (o: Observed, m: MemberView): boolean => isReadyVoter(m) && (o.etcd.is !== 'answers' || isHealthy(o, m));

export const waitForMembers = (o: Observed): Decided => {
  const waiting = o.members.filter((m) => !isGood(o, m));
  if (waiting.length === 0 && o.members.length === desired(o)) return undefined;
  const losses = waitingLosses(o);
  const reasons = waiting.map((m) => {
    const text = isNotBeingDeleted(m) ? unreadyBecause(m) : terminatingBecause(o, m);
    return `${nameOf(m)}: ${text ?? 'no status yet'}`;
  });
  const unready = reasons.length > 0 ? `waiting for members to be ready (${reasons.join('; ')})` : wrongNumber(o);
  return { message: losses.length > 0 ? losses.join('; ') : unready, requeueAfterMs: UNHEALTHY_RESYNC_MS };
};

const wrongNumber = (o: Observed): string => {
  const error = etcdError(o);
  const because =
    error === undefined
      ? (o.credentials.join.blockedBy?.message ?? 'etcd cannot change its members now')
      : `etcd does not respond to the operator: ${error}`;
  return `${o.members.length} of ${desired(o)} members, all ready, but ${because}`;
};

/** The Pod may be Ready for the kubelet while etcd does not respond to the operator. */
function unreadyBecause(m: MemberView): string | undefined {
  const ready = readyCondition(m.object);
  return ready?.status === 'True'
    ? 'its Pod is ready, but its etcd does not answer as a healthy voter'
    : ready?.message;
}

function terminatingBecause(o: Observed, m: MemberView): string {
  const entry = entryOf(o, m);
  if (!entriesOf(o))
    return 'being deleted, but etcd does not respond and cannot remove the member. Restore the quorum; if the data is not needed, delete the EtcdCluster';
  const blocked = entry && blockedBy(o, entry.id, 'remove');
  return blocked ? `being deleted, but cannot be removed from etcd now: ${blocked.message}` : 'being deleted';
}

export const steady = (o: Observed): ClusterDecision => {
  const error = etcdError(o);
  if (error === undefined) return { message: 'All members are ready', requeueAfterMs: RESYNC_MS };
  const message = `members are ready, but etcd does not respond to the operator: ${error}`;
  return { message, requeueAfterMs: UNHEALTHY_RESYNC_MS };
};
