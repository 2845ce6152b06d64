/** Rules about the cluster as a whole: deletion, adoption, conflicts, and the target that members are built from. */
import { CLUSTER_LABEL, etcdClusters } from '../../../api/names.ts';
import { controllerOf, identity, isBeingDeleted, ownedBy } from '../../../domain/ownership.ts';
import { whileSuspended } from '../../../domain/suspend.ts';
import { FOREIGN_RECHECK_MS } from '../../../domain/timing.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import { changesOf } from '../../../runtime/compose.ts';
import { independent, refTo } from '../../../runtime/plan.ts';
import {
  type Contributed,
  conflicts,
  type Decided,
  isFormed,
  isNotBeingDeleted,
  isPauseHeld,
  nameOf,
  type Observed,
  wanted,
} from '../observed.ts';
import { retainSteps } from '../quarantine.ts';
import { editedRollout } from '../rollout/edit.ts';
import { relabelSteps } from '../services.ts';
import { progressDeadline, specBlockedBy } from '../spec-drift.ts';
import { voterSteps } from '../voters.ts';

export const beingDeleted = (o: Observed): Decided =>
  isBeingDeleted(o.cluster)
    ? { message: 'the cluster is being deleted; the garbage collector deletes its objects' }
    : undefined;

/**
 * The operator observes and reports. Only `isVoter` of its members is still recorded: without it, a member that was just promoted
 * would be reported as missing.
 */
export const suspended = (o: Observed): Decided =>
  o.whenResumed && { ...whileSuspended(changesOf(o.whenResumed), o.whenResumed), steps: voterSteps(o) };

/**
 * etcd-migrate creates EtcdMembers without an owner reference, and a person can strip it. Without one, the garbage collector
 * would leave the member when its cluster is deleted. The resourceVersion makes the patch fail if another controller came first.
 */
export const adoptMembers = (o: Observed): Contributed => {
  const unowned = o.members.filter((m) => isNotBeingDeleted(m) && controllerOf(m.object) === undefined);
  if (unowned.length === 0) return undefined;
  const references = ownedBy(etcdClusters, o.cluster);
  const message = `adopting EtcdMembers without an owner: ${unowned.map(nameOf).join(', ')}`;
  return {
    message,
    sequences: unowned.map(({ object }) => {
      const others = (object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== o.cluster.metadata.uid);
      const ownerReferences = [...others, ...references];
      const to = refTo('EtcdMember', object, { resourceVersion: true });
      return [{ do: 'patch', to, fields: { metadata: { ownerReferences } } }];
    }),
    event: { type: 'Normal', reason: 'MembersAdopted', note: message },
  };
};

/** Users select EtcdMembers by this label. */
export const labelMembers = (o: Observed): Contributed => {
  const { name } = identity(o.cluster);
  const labels = { [CLUSTER_LABEL]: name };
  const unlabelled = o.members.filter(
    (m) => isNotBeingDeleted(m) && m.object.metadata.labels?.[CLUSTER_LABEL] !== name,
  );
  return independent(
    'an EtcdMember lacks the label of its cluster',
    unlabelled.map((m) => ({ do: 'patch', to: refTo('EtcdMember', m.object), fields: { metadata: { labels } } })),
  );
};

/** A cluster whose spec cannot be fully met is not bootstrapped; a running cluster is left as it is. */
export const blockedBySpec = (o: Observed): Decided => {
  const blocked = isFormed(o) ? undefined : specBlockedBy(o);
  // No event says that the owner of a Secret has labelled it, or that a snapshot is stored.
  const recheck = (o.notPermitted ?? o.restoreBlockedBy) !== undefined && { requeueAfterMs: FOREIGN_RECHECK_MS };
  return blocked && { message: blocked.message, ...recheck };
};

/** A cluster is not bootstrapped while a foreign object has one of its names; a running cluster continues and reports the conflict. */
export const nameTaken = (o: Observed): Decided =>
  isFormed(o) || conflicts(o).length === 0
    ? undefined
    : {
        message: `${conflicts(o).join('; ')}: delete or rename it, or give the cluster another name`,
        requeueAfterMs: FOREIGN_RECHECK_MS,
      };

/**
 * An edit becomes the target at once: every reconcile re-evaluates unfinished work, so a wrong edit is undone as soon as a user
 * reverts it. The previous additionalMetadata stays recorded until relabel has removed its labels from all objects.
 */
export const adoptTarget = (o: Observed): Contributed => {
  const { observed } = o.cluster.status ?? {};
  if (observed === undefined || o.specBlockedBy !== undefined) return undefined;
  const { additionalMetadata: next, ...target } = wanted(o);
  const metadata = relabelSteps(o).length > 0 ? observed.additionalMetadata : next;
  // The number of members to keep until the cluster can be paused.
  const replicas = isPauseHeld(o) ? observed.replicas : target.replicas;
  const adopted = { ...target, replicas, ...(metadata && { additionalMetadata: metadata }) };
  if (sameJson(observed, adopted)) return undefined;
  const rollout = editedRollout(o);
  return {
    message: 'the spec changed',
    latch: { observed: adopted, progressDeadline: progressDeadline(o), ...(rollout && { rollout }) },
  };
};

/** Members carry the deletionPolicy for their PVCs: once the cluster is deleted, the member controller cannot read it there. */
export const propagateDeletionPolicy = (o: Observed): Contributed => {
  const policy = o.cluster.spec.deletionPolicy;
  const outdated = o.members.filter((m) => isNotBeingDeleted(m) && m.object.spec.deletionPolicy !== policy);
  const fields = { spec: { deletionPolicy: policy ?? null } };
  return independent(`deletionPolicy is ${policy ?? 'Delete'}`, [
    ...outdated.map((m) => ({ do: 'patch', to: refTo('EtcdMember', m.object), fields }) as const),
    ...retainSteps(o),
  ]);
};
