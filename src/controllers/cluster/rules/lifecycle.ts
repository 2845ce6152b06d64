/** Rules about the cluster as a whole: deletion, adoption, conflicts, and the target that members are built from. */
import { etcdClusters } from '../../../api/names.ts';
import { controllerOf, isBeingDeleted, ownedBy } from '../../../domain/ownership.ts';
import { FOREIGN_RECHECK_MS } from '../../../domain/timing.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';

import {
  conflicts,
  type Decided,
  isFormed,
  isNotBeingDeleted,
  isRefused,
  nameOf,
  type Observed,
  wanted,
} from '../observed.ts';
import { blocked, progressDeadline } from '../spec-drift.ts';

export const beingDeleted = (o: Observed): Decided =>
  isBeingDeleted(o.cluster)
    ? { message: 'the cluster is being deleted; the garbage collector deletes its objects' }
    : undefined;

/**
 * etcd-migrate creates EtcdMembers without an owner reference, and a person can strip it. Without one, the garbage collector
 * would leave the member when its cluster is deleted. The resourceVersion makes the patch fail if another controller came first.
 */
export const adoptMembers = (o: Observed): Decided => (isRefused(o) ? undefined : adoptRefused(o));

/** The same, after the urgent rules: a patch that an admission policy refuses must not keep a member from being repaired. */
export const adoptRefused = (o: Observed): Decided => {
  const unowned = o.members.filter((m) => isNotBeingDeleted(m) && controllerOf(m.object) === undefined);
  if (unowned.length === 0) return undefined;
  const references = ownedBy(etcdClusters, o.cluster);
  const message = `adopting EtcdMembers without an owner: ${unowned.map(nameOf).join(', ')}`;
  return {
    message,
    steps: unowned.map(({ object }): Step => {
      const others = (object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== o.cluster.metadata.uid);
      const ownerReferences = [...others, ...references];
      return {
        do: 'patch',
        to: refTo('EtcdMember', object, { resourceVersion: true }),
        fields: { metadata: { ownerReferences } },
      };
    }),
    event: { type: 'Normal', reason: 'MembersAdopted', note: message },
  };
};

/** A cluster whose spec cannot be fully met is not bootstrapped; a running cluster is left as it is. */
export const blockedBySpec = (o: Observed): Decided => {
  const message = blocked(o);
  return isFormed(o) || message === undefined ? undefined : { message };
};

/** A cluster is not bootstrapped while a foreign object has one of its names; a running cluster continues and reports the conflict. */
export const nameTaken = (o: Observed): Decided =>
  isFormed(o) || conflicts(o).length === 0
    ? undefined
    : {
        message: `${conflicts(o).join('; ')}: delete or rename it, or give the cluster another name`,
        requeueAfterMs: FOREIGN_RECHECK_MS,
      };

/** An edit becomes the target at once: every reconcile re-evaluates unfinished work, so a wrong edit is undone as soon as a user reverts it. */
export const adoptTarget = (o: Observed): Decided => {
  const { observed } = o.cluster.status ?? {};
  if (observed === undefined || blocked(o) !== undefined || sameJson(observed, wanted(o))) return undefined;
  return {
    message: 'the spec changed',
    latch: { observed: wanted(o), progressDeadline: progressDeadline(o) },
  };
};

/** Members carry the deletionPolicy for their PVCs: once the cluster is deleted, the member controller cannot read it there. */
export const propagateDeletionPolicy = (o: Observed): Decided => {
  const policy = o.cluster.spec.deletionPolicy;
  const steps = o.members
    .filter((m) => isNotBeingDeleted(m) && m.object.spec.deletionPolicy !== policy)
    .map(
      (m): Step => ({
        do: 'patch',
        to: refTo('EtcdMember', m.object),
        fields: { spec: { deletionPolicy: policy ?? null } },
      }),
    );
  return steps.length === 0 ? undefined : { message: `deletionPolicy is ${policy ?? 'Delete'}`, steps };
};
