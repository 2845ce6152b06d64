/** API fields that this build does not support yet: accepted, not acted on, and reported in a condition. */
import { type ConditionUpdate, conditionOf } from './conditions.ts';

export const NOT_YET_SUPPORTED = 'NotYetSupported';

/** A field that is not supported yet. */
export interface NotYet {
  /** The condition's reason: `TLS`, `Replicas`. */
  readonly subject: string;
  /** Which field, why nothing happens, and what to do. */
  readonly message: string;
}

/** One condition for all such fields; none when all are supported. */
export function notYetConditions(asked: readonly NotYet[]): readonly ConditionUpdate[] {
  const [first, ...others] = asked;
  if (!first) return [];
  const reason = others.length === 0 ? first.subject : 'SeveralFields';
  return [conditionOf(NOT_YET_SUPPORTED)('True', reason, asked.map(({ message }) => message).join('; '))];
}
