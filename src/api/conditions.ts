/** Conditions: what the operator reports about an object, and since when. */
import Type from 'typebox';
import { sameJson } from '../lib/merge-patch.ts';

/** Agents run the operator's image, and neither the flag nor the variable names it. */
export const OPERATOR_IMAGE_NOT_CONFIGURED = 'OperatorImageNotConfigured';
export const NO_OPERATOR_IMAGE =
  "the operator's image is not configured, and the agent that restores a snapshot needs it: set --operator-image or OPERATOR_IMAGE on the operator";

/** The API server refuses a longer message, and with it the whole status. */
const MAX_MESSAGE = 32_768;

export const CONDITION_STATUS = ['True', 'False', 'Unknown'] as const;

export const ConditionSchema = Type.Object({
  type: Type.String({ maxLength: 316, description: 'The type of the condition, such as Ready.' }),
  status: Type.Enum([...CONDITION_STATUS], { type: 'string' }),
  observedGeneration: Type.Optional(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      description: 'The metadata.generation that the condition was determined for.',
    }),
  ),
  lastTransitionTime: Type.String({ format: 'date-time', description: 'When the status last changed.' }),
  reason: Type.String({ minLength: 1, maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
  message: Type.String({ maxLength: MAX_MESSAGE, description: 'What it means, and what a user can do.' }),
});

/** A map by type: several writers can each apply their own conditions. */
export const ConditionsSchema = Type.Array(ConditionSchema, {
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});

export type ConditionStatus = (typeof CONDITION_STATUS)[number];
export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly observedGeneration?: number;
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}
/** The new value of a condition; `lastTransitionTime` is derived from the previous one. */
export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

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
