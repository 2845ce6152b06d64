/** Conditions: what the operator says about an object, and when it last changed its mind. */
import Type from 'typebox';
import { sameJson } from '../lib/merge-patch.ts';

/** Agents run from the operator's image, and nobody has said which it is. */
export const OPERATOR_IMAGE_NOT_CONFIGURED = 'OperatorImageNotConfigured';
export const NO_OPERATOR_IMAGE =
  "a snapshot is restored by an agent from the operator's image, and the operator was not told which that is: set --operator-image or OPERATOR_IMAGE";

/** More is refused by the API server, and with it the whole status. */
const MAX_MESSAGE = 32_768;

export const CONDITION_STATUS = ['True', 'False', 'Unknown'] as const;

export const ConditionSchema = Type.Object({
  type: Type.String({ maxLength: 316, description: 'What the condition is about.' }),
  status: Type.Enum([...CONDITION_STATUS], { type: 'string' }),
  observedGeneration: Type.Optional(
    Type.Integer({ format: 'int64', minimum: 0, description: 'The metadata.generation that this was said about.' }),
  ),
  lastTransitionTime: Type.String({ format: 'date-time', description: 'When the status last changed.' }),
  reason: Type.String({ minLength: 1, maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
  message: Type.String({ maxLength: MAX_MESSAGE, description: 'What it means, and what a person can do.' }),
});

/** Each type once: several writers can each apply their own. */
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
/** What is so now; when it became so is found by comparing with what was said before. */
export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export const findCondition = (conditions: readonly Condition[] | undefined, type: string): Condition | undefined =>
  conditions?.find((c) => c.type === type);

/** The conditions after these verdicts. The time moves only with the status; types without a verdict are kept, unless dropped. */
export function updateConditions(
  before: readonly Condition[] | undefined,
  verdicts: readonly ConditionUpdate[],
  at: { readonly generation: number | undefined; readonly now: string },
  dropped: readonly string[] = [],
): readonly Condition[] {
  const said = verdicts.map((v): Condition => {
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
  const kept = (before ?? []).filter((c) => !dropped.includes(c.type) && !verdicts.some((v) => v.type === c.type));
  return [...said, ...kept];
}

/** The conditions whose status or reason is not what it was: each of them is worth an Event. */
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
