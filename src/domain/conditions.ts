/** How conditions are found, updated and compared. */
import { type Condition, MAX_MESSAGE } from '../api/conditions.ts';
import { sameJson } from '../lib/merge-patch.ts';

/** Agents run the operator's image, and neither the flag nor the variable names it. */
export const OPERATOR_IMAGE_NOT_CONFIGURED = 'OperatorImageNotConfigured';
export const NO_OPERATOR_IMAGE =
  "the operator's image is not configured, and the agent that restores a snapshot needs it: set --operator-image or OPERATOR_IMAGE on the operator";

/** The new value of a condition; `lastTransitionTime` is derived from the previous one. */
export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export const conditionOf =
  (type: string) =>
  (status: Condition['status'], reason: string, message: string): ConditionUpdate => ({
    type,
    status,
    reason,
    message,
  });

export const findCondition = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find((c) => c.type === type);

/** Applies the updates. `lastTransitionTime` changes only with the status; other types are kept, unless dropped. */
export function updateConditions(
  before: readonly Condition[] | undefined,
  updates: readonly ConditionUpdate[],
  at: { readonly generation: number | undefined; readonly now: string },
  dropped: readonly string[] = [],
): readonly Condition[] {
  const updated = updates.map((v): Condition => {
    const old = findCondition(before, v.type);
    return {
      type: v.type,
      status: v.status,
      ...(at.generation !== undefined && { observedGeneration: at.generation }),
      lastTransitionTime: old?.status === v.status ? old.lastTransitionTime : at.now,
      reason: v.reason,
      message: v.message.length > MAX_MESSAGE ? `${v.message.slice(0, MAX_MESSAGE - 1)}…` : v.message,
    };
  });
  const kept = (before ?? []).filter((c) => !dropped.includes(c.type) && !updates.some((v) => v.type === c.type));
  return [...updated, ...kept];
}

/** The conditions whose status or reason has changed: each leads to an Event. */
export const changedConditions = (
  before: readonly Condition[] | undefined,
  after: readonly Condition[] | undefined,
): readonly Condition[] =>
  (after ?? []).filter((c) => {
    const old = findCondition(before, c.type);
    return old?.status !== c.status || old.reason !== c.reason;
  });

/**
 * Whether two statuses differ in messages at most, and in the `late` fields: such a change is written with the next one that
 * a client can wait for. Each on its own would cost a reconcile and a PATCH.
 */
export const messagesOnly = <Status extends { readonly conditions?: readonly Condition[] }>(
  before: Status,
  after: Status,
  late: readonly (keyof Status)[] = [],
): boolean => {
  const withoutMessages = (status: Status): unknown => ({
    ...status,
    ...Object.fromEntries(late.map((field) => [field, undefined])),
    ...(!late.includes('conditions') && { conditions: status.conditions?.map((c) => ({ ...c, message: '' })) }),
  });
  return sameJson(withoutMessages(before), withoutMessages(after));
};
