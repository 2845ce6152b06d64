/** Things that the API has and this build does not do yet: accepted, not started, and said so. */
import type { ConditionUpdate } from '../api/conditions.ts';

export const NOT_YET_SUPPORTED = 'NotYetSupported';

/** Something that was asked for and cannot be done yet. */
export interface NotYet {
  /** What it is about, as a condition's reason: `TLS`, `Replicas`. */
  readonly subject: string;
  /** What was asked, why nothing happens, and what to do. */
  readonly message: string;
}

/** One condition for all of it; none when all can be done. */
export function notYetConditions(asked: readonly NotYet[]): readonly ConditionUpdate[] {
  const [first, ...others] = asked;
  if (!first) return [];
  return [
    {
      type: NOT_YET_SUPPORTED,
      status: 'True',
      reason: others.length === 0 ? first.subject : 'SeveralFields',
      message: asked.map((a) => a.message).join('; '),
    },
  ];
}
