/** Rules for a member that is being deleted, or whose cluster is. */
import { EVIDENCE } from '../../../api/etcd-member.ts';
import {
  etcdMembers,
  MEMBER_FINALIZER,
  memberLabels,
  QUARANTINE_LABEL,
  QUARANTINED_AT_ANNOTATION,
  type Quarantine,
} from '../../../api/names.ts';
import { identity, isBeingDeleted, ownedBy } from '../../../domain/ownership.ts';
import { isPodOver } from '../../../domain/pod.ts';
import { REMOVAL_RETRY_MS } from '../../../domain/timing.ts';
import type { PersistentVolumeClaim } from '../../../gen/kube.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { provenLoss } from '../evidence.ts';
import {
  type Decided,
  hasJoined,
  inMemory,
  isClusterBeingDeleted,
  isClusterFormed,
  isDeleting,
  isDormant,
  isListed,
  isReplaced,
  type Observed,
} from '../observed.ts';

/** Why the PVC outlives its member; `undefined`: it does not. */
function quarantineReason(o: Observed): Quarantine | undefined {
  const retained = isClusterBeingDeleted(o) ? 'cluster-deleted' : 'member-removed';
  if ((o.policy ?? o.member.spec.deletionPolicy) === 'Retain') return retained;
  if (isReplaced(o)) return 'member-replaced';
  return o.policy === 'Delete' ? undefined : 'policy-unknown';
}

/** A webhook that restarts refuses a few times, a policy that protects PVCs for ever. */
const MAX_REFUSALS = 5;

/**
 * The PVC is neither deleted nor labelled, and stays as it is: the finalizer must not wait for that, because no member is added
 * while another one is being deleted. One with an owner reference would not stay.
 */
const isRefused = (
  { memory }: Observed,
  { metadata: { name, ownerReferences = [] } }: PersistentVolumeClaim,
): boolean =>
  ownerReferences.length === 0 &&
  memory.failures.some(
    ({ is, target, times }) => is === 'refused' && target === `PersistentVolumeClaim ${name}` && times >= MAX_REFUSALS,
  );

/**
 * What happens to the PVC of a member that etcd does not need any more. One that is kept gets a label why and an annotation since
 * when. The PVC of a seed whose cluster never formed is not kept: it would block the next seed of that name. The garbage
 * collector deletes it with the member and not before: the cluster may form right now, and then the finalizer is not released.
 */
function disposeVolume(o: Observed): readonly Step[] {
  if (o.volume.is !== 'ours' || inMemory(o) || isBeingDeleted(o.volume.object)) return [];
  if (isRefused(o, o.volume.object)) return [];
  const what = refTo('PersistentVolumeClaim', o.volume.object, { resourceVersion: true });
  if (!isClusterFormed(o) && o.cluster !== undefined)
    return [{ do: 'patch', to: what, fields: { metadata: { ownerReferences: ownedBy(etcdMembers, o.member) } } }];
  const reason = quarantineReason(o);
  if (reason === undefined) return [{ do: 'delete', what }];
  const metadata = {
    ownerReferences: null,
    labels: {
      ...memberLabels(o.member.spec.clusterName, identity(o.member).name), // a PVC that has lost them is not in the cache, and would be kept for ever
      [QUARANTINE_LABEL]: reason,
    },
    annotations: { [QUARANTINED_AT_ANNOTATION]: new Date(o.now).toISOString() }, // also of a replaced one: it may have been labelled days ago
  };
  return [{ do: 'patch', to: what, fields: { metadata } }];
}

function releaseFinalizer(o: Observed, message: string): Decided {
  const finalizers = (o.member.metadata.finalizers ?? []).filter((f) => f !== MEMBER_FINALIZER);
  const to = refTo('EtcdMember', o.member, { resourceVersion: true });
  return { message, steps: [...disposeVolume(o), { do: 'patch', to, fields: { metadata: { finalizers } } }] };
}

/**
 * While etcd counts its vote, the member may be needed for quorum: a Pod that it loses meanwhile is recreated. A paused member
 * stays paused, and is removed after it is resumed.
 */
const mustKeepVolume = (o: Observed): boolean => {
  if (isDormant(o)) return true;
  const lacksPod = o.pod.is === 'absent' || (o.pod.is === 'ours' && isPodOver(o.pod.object));
  return hasJoined(o) && o.volume.is === 'ours' && lacksPod;
};

/** No other member has the acknowledged writes. Users may still recover data from a damaged volume. */
const isLastCopy = (o: Observed): boolean => {
  const reason = provenLoss(o)?.reason;
  return isClusterFormed(o) && hasJoined(o) && reason !== EVIDENCE.dataLost && reason !== EVIDENCE.volumeLost;
};

/** The finalizer is kept until etcd has removed the member: otherwise etcd would count the vote of a deleted member for ever. */
export function release(o: Observed): Decided {
  if (!isDeleting(o)) return undefined;
  if (!o.member.metadata.finalizers?.includes(MEMBER_FINALIZER))
    return { message: 'the finalizer is released; waiting for the finalizers of other controllers' };
  if (o.policy === 'pending')
    return { message: 'waiting for the event of the deletion of its cluster', requeueAfterMs: REMOVAL_RETRY_MS };
  if (isClusterBeingDeleted(o)) return releaseFinalizer(o, 'the whole cluster is being deleted');
  switch (o.peers.is) {
    case 'none':
      if (!isLastCopy(o)) return releaseFinalizer(o, 'it is the only member: there is no other member to remove it');
      if (mustKeepVolume(o)) return undefined;
      return { message: 'it is the only member and has the only copy of the data: waiting for a replacement voter' };
    case 'unreachable':
      if (mustKeepVolume(o)) return undefined;
      return {
        message: `waiting for the other members to report whether it was removed: ${o.peers.message}`,
        requeueAfterMs: REMOVAL_RETRY_MS,
      };
    case 'answer': {
      const known = isListed(o.member, o.peers.members);
      if (known && mustKeepVolume(o)) return undefined;
      return known
        ? {
            message: 'etcd still lists this member: waiting for its removal from etcd',
            requeueAfterMs: REMOVAL_RETRY_MS,
          }
        : releaseFinalizer(o, 'etcd has removed this member');
    }
  }
}

/** The garbage collector deletes the member as well; nothing is created for it meanwhile. */
export const clusterBeingDeleted = (o: Observed): Decided =>
  isClusterBeingDeleted(o) ? { message: 'its cluster is deleted or being deleted' } : undefined;
