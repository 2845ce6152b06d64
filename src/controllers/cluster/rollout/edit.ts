/** What the recorded rollout becomes by an edit of the spec. Rules that record its failure, or its progress, ask here first: one plan records one value. */
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import type { Template } from '../../../api/template.ts';
import { RESTART_FIELDS } from '../../../domain/pod-template.ts';
import { iso } from '../../../lib/time.ts';
import { type ClusterFacts, isFormed, wanted } from '../observed.ts';
import { sameField } from '../spec-drift.ts';
import { fitted, lackedFields } from './template.ts';

export type Rollout = NonNullable<EtcdClusterStatus['rollout']>;

/** Running members keep the quota of their volumes: a larger storage.size alone changes nothing that they have. */
const isEdit = (before: Template, after: Template): boolean =>
  RESTART_FIELDS.some((field) => !sameField(field, before, fitted(after, before)));

/**
 * Rolls the edit out from the next reconcile on, when it is recorded what all members had before. An operator that takes the
 * cluster over has not observed the edit, and restarts no member. `undefined` when this plan adopts no edit.
 */
export function editedRollout(o: ClusterFacts): Rollout | undefined {
  const { members, rollout, observed } = o.cluster.status ?? {};
  if (!isFormed(o) || observed === undefined || members === undefined || !isEdit(observed, wanted(o))) return undefined;
  const { replicas: _, ...template } = observed;
  const isReached = rollout?.since === undefined && o.members.every((m) => lackedFields(m, observed).length === 0);
  const previous = isReached ? template : rollout?.previous;
  return { since: iso(o.now), ...(previous && { previous }) };
}
