/** Whether the API server keeps what the operator records. Its CRDs may be managed apart from the operator, and be older. */
import { type ConditionUpdate, conditionOf } from './conditions.ts';

/** Present only when False. */
export const CRDS_CURRENT = 'CRDsCurrent';

/** `messages`: what the API server has dropped. */
export const crdConditions = (messages: readonly string[]): readonly ConditionUpdate[] =>
  messages.length === 0
    ? []
    : [conditionOf(CRDS_CURRENT)('False', 'StatusFieldsDropped', [...new Set(messages)].join('; '))];
