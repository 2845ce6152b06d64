/** What the recorded rollout becomes by an edit of the spec. Rules that record its failure, or its progress, ask here first: one plan records one value. */
import { targetOf } from '../../../api/defaults.ts';
import type { Template } from '../../../api/template.ts';
import { digestOfTemplate, RESTART_FIELDS } from '../../../domain/pod-template.ts';
import { isSuspended } from '../../../domain/suspend.ts';
import { iso } from '../../../lib/time.ts';
import { desired, isFormed, isReadyVoter, type Observed, wanted } from '../observed.ts';
import { sameField } from '../spec-drift.ts';
import type { Rollout } from './failed.ts';
import { fitted, lackedFields } from './template.ts';

/** Running members keep the quota of their volumes: a larger storage.size alone changes nothing that they have. */
const isEdit = (before: Template, after: Template): boolean =>
  RESTART_FIELDS.some((field) => !sameField(field, before, fitted(after, before)));

const canAdopt = (o: Observed): boolean => !isSuspended(o.cluster) && o.specBlockedBy === undefined;

/**
 * Rolls the edit out from the next reconcile on, when it is recorded what all members had before. An operator that takes the
 * cluster over has not observed the edit, and restarts no member. `undefined` when this plan adopts no edit.
 */
export function editedRollout(o: Observed): Rollout | undefined {
  const { members, rollout, observed } = o.cluster.status ?? {};
  if (!isFormed(o) || !canAdopt(o) || observed === undefined || members === undefined) return undefined;
  if (!isEdit(observed, wanted(o)) || rollout?.found === digestOfTemplate(wanted(o))) return undefined;
  const { replicas: _, ...template } = observed;
  const isReached = rollout?.since === undefined && o.members.every((m) => lackedFields(m, observed).length === 0);
  const previous = isReached ? template : rollout?.previous;
  return { since: iso(o.now), ...(previous && { previous }) };
}

/**
 * The operator takes the cluster over, and cannot adopt its spec yet. Without this record, what differs from the spec would count
 * as an edit as soon as the spec is adopted, and restart members.
 */
export function foundAtTakeOver(o: Observed): Rollout | undefined {
  const { members, observed } = o.cluster.status ?? {};
  if (!isFormed(o) || canAdopt(o) || observed === undefined || members !== undefined) return undefined;
  const target = targetOf(o.blockedSpec ?? o.cluster.spec, o.cluster.status);
  return isEdit(observed, target) ? { found: digestOfTemplate(target) } : undefined;
}

/** No member is missing, so none is replaced, or the one that was replaced has joined. */
const isComplete = (o: Observed): boolean => o.members.length === desired(o) && o.members.every(isReadyVoter);

/**
 * What stays recorded after this plan. Once the spec is adopted, every difference to it is an edit; and checks that have passed
 * before a member was to be replaced count for that member only.
 */
export function keptRollout(o: Observed, rollout: Rollout): Rollout | undefined {
  if (rollout.found !== undefined && canAdopt(o)) return undefined;
  const { checked, ...rest } = rollout;
  return checked === undefined || isComplete(o) ? rest : rollout;
}
