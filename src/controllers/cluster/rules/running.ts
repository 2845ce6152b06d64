/** Rules for a cluster that exists. */
import { QUARANTINED_AT_ANNOTATION } from '../../../api/names.ts';
import type { PersistentVolumeClaim } from '../../../gen/kube.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { isHealthy, removalBlockedBy } from '../disruption.ts';
import {
  type ClusterDecision,
  clusterIdMismatch,
  type Decided,
  desired,
  entriesOf,
  entryOf,
  isNotBeingDeleted,
  isReadyVoter,
  type MemberView,
  nameOf,
  type Observed,
  readyCondition,
} from '../observed.ts';
import { waitingLosses } from '../replacement.ts';

/** Events tell when a Pod changes; etcd itself sends none. */
const ASK_AGAIN_MS = 5 * 60_000;
const ASK_SOON_MS = 5_000;

/** An address can come to belong to another cluster: nothing that it says is about ours. */
export const otherClusterId = (o: Observed): Decided => {
  const why = clusterIdMismatch(o);
  return why === undefined ? undefined : { message: why, requeueAfterMs: ASK_SOON_MS };
};

/** Which members vote is etcd's to say; the client Service follows from it. */
export const recordVoters = (o: Observed): Decided => {
  if (!entriesOf(o)) return undefined;
  const steps = o.members.flatMap((m): readonly Step[] => {
    const entry = entryOf(o, m);
    const isVoter = entry?.isLearner === false;
    // What a member that is not on the list was is told to whoever judges the list.
    if ((!entry && isNotBeingDeleted(m)) || (m.object.status?.isVoter ?? false) === isVoter) return [];
    return [{ do: 'patch', to: refTo('EtcdMember', m.object), subresource: 'status', fields: { status: { isVoter } } }];
  });
  return steps.length === 0 ? undefined : { message: 'which members vote has changed', steps };
};

/** Volumes of members that went are kept for a while, in case they are missed. */
const QUARANTINE_MS = 7 * 24 * 60 * 60_000;

const leftMs = (o: Observed, claim: PersistentVolumeClaim): number => {
  const since = claim.metadata.annotations?.[QUARANTINED_AT_ANNOTATION] ?? claim.metadata.creationTimestamp ?? '';
  return (Date.parse(since) || o.now) + QUARANTINE_MS - o.now;
};

export const expireVolumes = (o: Observed): Decided => {
  const over = o.quarantined.filter((c) => c.metadata.deletionTimestamp === undefined && leftMs(o, c) <= 0);
  if (over.length === 0) return undefined;
  const steps = over.map(
    (c): Step => ({ do: 'delete', what: refTo('PersistentVolumeClaim', c, { resourceVersion: true }) }),
  );
  return { message: 'volumes of members that went a week ago are not needed any more', steps };
};

const isGood = (o: Observed, m: MemberView): boolean => isReadyVoter(m) && (o.etcd.is !== 'answers' || isHealthy(o, m));

export const waitForMembers = (o: Observed): Decided => {
  const waiting = o.members.filter((m) => !isGood(o, m));
  if (waiting.length === 0 && o.members.length === desired(o)) return undefined;
  const losses = waitingLosses(o);
  const reasons = waiting.map((m) => {
    const text = isNotBeingDeleted(m) ? unreadyBecause(m) : terminatingBecause(o, m);
    return `${nameOf(m)}: ${text ?? 'not looked at yet'}`;
  });
  const why = losses.length > 0 ? losses.join('; ') : `waiting for members to be ready (${reasons.join('; ')})`;
  return { message: why, requeueAfterMs: ASK_SOON_MS };
};

/** The Pod may be ready by its own probe while etcd does not answer the operator. */
function unreadyBecause(m: MemberView): string | undefined {
  const said = readyCondition(m.object);
  return said?.status === 'True' ? 'its Pod is ready, but its etcd does not answer as a healthy voter' : said?.message;
}

function terminatingBecause(o: Observed, m: MemberView): string {
  const entry = entryOf(o, m);
  if (!entriesOf(o))
    return 'being deleted, but etcd does not answer, and only etcd can let it go. If the data is not needed, delete the EtcdCluster';
  const closed = entry && removalBlockedBy(o, entry);
  return closed === undefined ? 'being deleted' : `being deleted, but etcd cannot let it go now: ${closed}`;
}

export const steady = (o: Observed): ClusterDecision =>
  o.etcd.is === 'silent'
    ? {
        message: `members are ready, but etcd does not answer the operator: ${o.etcd.why}`,
        requeueAfterMs: ASK_SOON_MS,
      }
    : { message: 'All members are ready', requeueAfterMs: ASK_AGAIN_MS };
