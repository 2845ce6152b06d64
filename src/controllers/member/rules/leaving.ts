/** Rules for a member that goes, or whose cluster is gone. */
import { EVIDENCE } from '../../../api/etcd-member.ts';
import {
  etcdMembers,
  MEMBER_FINALIZER,
  memberLabels,
  QUARANTINE_LABEL,
  QUARANTINED_AT_ANNOTATION,
} from '../../../api/names.ts';
import { identity, ownedBy } from '../../../domain/ownership.ts';
import { isPodOver } from '../../../domain/pod.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { provenLoss } from '../evidence.ts';
import {
  type Decided,
  hasJoined,
  isClusterBeingDeleted,
  isClusterFormed,
  isDeleting,
  isDormant,
  isListed,
  type Observed,
  retains,
} from '../observed.ts';

const RETRY_MS = 1_000;

/**
 * A volume that stays says from now on why, and since when. Of a seed whose cluster never formed there is nothing to
 * keep: its volume would be in the way of the next one of that name. It goes with the member and not before it: the
 * cluster may form in this very moment, and then the member is not let go.
 */
function keepVolume(o: Observed): readonly Step[] {
  if (!retains(o) || o.volume.is !== 'ours') return [];
  const what = refTo('PersistentVolumeClaim', o.volume.object, { resourceVersion: true });
  if (!isClusterFormed(o) && o.cluster !== undefined)
    return [{ do: 'patch', to: what, fields: { metadata: { ownerReferences: ownedBy(etcdMembers, o.member) } } }];
  const metadata = {
    ownerReferences: null,
    labels: {
      ...memberLabels(o.member.spec.clusterName, identity(o.member).name), // who has lost them is not seen, and kept for ever
      [QUARANTINE_LABEL]: isClusterBeingDeleted(o) ? 'cluster-deleted' : 'member-removed',
    },
    annotations: { [QUARANTINED_AT_ANNOTATION]: new Date(o.now).toISOString() },
  };
  return [{ do: 'patch', to: what, fields: { metadata } }];
}

const releaseFinalizer = (o: Observed, why: string): Decided => ({
  message: why,
  steps: [
    ...keepVolume(o),
    {
      do: 'patch',
      to: refTo('EtcdMember', o.member, { resourceVersion: true }),
      fields: {
        metadata: { finalizers: (o.member.metadata.finalizers ?? []).filter((f) => f !== MEMBER_FINALIZER) },
      },
    },
  ],
});

/**
 * As long as etcd counts its vote, it may be the one that decides: a Pod that it loses meanwhile is made again. One that is
 * parked goes on with that: it leaves when it is awake.
 */
const mustKeepVolume = (o: Observed): boolean => {
  if (isDormant(o)) return true;
  const lacksPod = o.pod.is === 'absent' || (o.pod.is === 'ours' && isPodOver(o.pod.object));
  return hasJoined(o) && o.volume.is === 'ours' && lacksPod;
};

/** Nobody else has what was acknowledged. From a damaged volume, people may still get something. */
const isLastCopy = (o: Observed): boolean => {
  const reason = provenLoss(o)?.reason;
  return isClusterFormed(o) && hasJoined(o) && reason !== EVIDENCE.dataLost && reason !== EVIDENCE.volumeLost;
};

/** The object stays until etcd has no such member any more: otherwise the cluster would wait for its vote for ever. */
export function release(o: Observed): Decided {
  if (!isDeleting(o)) return undefined;
  if (!o.member.metadata.finalizers?.includes(MEMBER_FINALIZER))
    return { message: 'released; waiting for others to let go' };
  if (isClusterBeingDeleted(o)) return releaseFinalizer(o, 'the cluster is deleted as a whole');
  switch (o.peers.is) {
    case 'none':
      if (!isLastCopy(o)) return releaseFinalizer(o, 'it is the only member: there is nobody to remove it from');
      if (mustKeepVolume(o)) return undefined;
      return {
        message: 'it is the only member, and has the only copy of the data: another one has to take over first',
      };
    case 'silent':
      if (mustKeepVolume(o)) return undefined;
      return {
        message: `waiting for the other members to say whether it was removed: ${o.peers.why}`,
        requeueAfterMs: RETRY_MS,
      };
    case 'answer': {
      const known = isListed(o.member, o.peers.members);
      if (known && mustKeepVolume(o)) return undefined;
      return known
        ? { message: 'etcd still counts this member: it has to be removed there first', requeueAfterMs: RETRY_MS }
        : releaseFinalizer(o, 'etcd has no such member any more');
    }
  }
}

/** Kubernetes deletes the member as well; nothing is made for it in the meantime. */
export const clusterGoing = (o: Observed): Decided =>
  isClusterBeingDeleted(o) ? { message: 'its cluster is gone or being deleted' } : undefined;
