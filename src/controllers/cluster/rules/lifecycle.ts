/** Rules about the cluster as a whole: is there anything to do, and towards which target. */
import { etcdClusters } from '../../../api/names.ts';
import { controllerOf, isBeingDeleted, ownedBy } from '../../../domain/ownership.ts';
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

/** Things that carry no label of ours send us no event when they go. */
const RECHECK_MS = 10_000;

export const beingDeleted = (o: Observed): Decided =>
  isBeingDeleted(o.cluster)
    ? { message: 'the cluster is being deleted; Kubernetes removes what belongs to it' }
    : undefined;

/**
 * etcd-migrate creates EtcdMembers without an owner reference, and a person can strip it. Without one, the garbage collector
 * would leave the member when its cluster is deleted. The resourceVersion makes the patch fail if another controller came first.
 */
export const adoptMembers = (o: Observed): Decided => (isRefused(o) ? undefined : adoptRefused(o));

/** The same, after all that is urgent: a patch that a policy refuses must not keep a member from being repaired. */
export const adoptRefused = (o: Observed): Decided => {
  const unowned = o.members.filter((m) => isNotBeingDeleted(m) && controllerOf(m.object) === undefined);
  if (unowned.length === 0) return undefined;
  const references = ownedBy(etcdClusters, o.cluster);
  const why = `adopting EtcdMembers without an owner: ${unowned.map(nameOf).join(', ')}`;
  return {
    message: why,
    steps: unowned.map(({ object }): Step => {
      const others = (object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== o.cluster.metadata.uid);
      const ownerReferences = [...others, ...references];
      return {
        do: 'patch',
        to: refTo('EtcdMember', object, { resourceVersion: true }),
        fields: { metadata: { ownerReferences } },
      };
    }),
    event: { type: 'Normal', reason: 'MembersAdopted', note: why },
  };
};

/** Nothing is begun that could not be finished as it was asked for. A running cluster goes on as it is. */
export const blockedBySpec = (o: Observed): Decided => {
  const why = blocked(o);
  return isFormed(o) || why === undefined ? undefined : { message: why };
};

/** Before a cluster exists, nothing is made next to somebody else's objects. A running one goes on and says so. */
export const nameTaken = (o: Observed): Decided =>
  isFormed(o) || conflicts(o).length === 0
    ? undefined
    : {
        message: `${conflicts(o).join('; ')}: delete or rename it, or give the cluster another name`,
        requeueAfterMs: RECHECK_MS,
      };

/** An edit is taken up at once: what is half-done is judged anew in every pass, and a wrong edit is undone as soon as it is taken back. */
export const adoptTarget = (o: Observed): Decided => {
  const { observed } = o.cluster.status ?? {};
  if (observed === undefined || blocked(o) !== undefined || sameJson(observed, wanted(o))) return undefined;
  return {
    message: 'the spec was edited',
    latch: { observed: wanted(o), progressDeadline: progressDeadline(o) },
  };
};

/** Members must know what becomes of their volumes: when the cluster is gone, nobody can be asked any more. */
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
