/** The schema of conditions: what the operator reports about an object, and since when. */
import Type from 'typebox';
import type { Accepted } from './meta.ts';
import { optionalInt64 } from './optional.ts';

/** The API server refuses a longer message, and with it the whole status. */
export const MAX_MESSAGE = 32_768;

const ConditionSchema = Type.Object({
  type: Type.String({ maxLength: 316, description: 'The type of the condition, such as Ready.' }),
  status: Type.Enum(['True', 'False', 'Unknown'], { type: 'string' }),
  observedGeneration: optionalInt64('The metadata.generation that the condition was determined for.', { minimum: 0 }),
  lastTransitionTime: Type.String({ format: 'date-time', description: 'When the status last changed.' }),
  reason: Type.String({ minLength: 1, maxLength: 1024, pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$' }),
  message: Type.String({ maxLength: MAX_MESSAGE, description: 'What it means, and what a user can do.' }),
});

/** A map by type: several writers can each apply their own conditions. */
export const ConditionsSchema = Type.Array(ConditionSchema, {
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
});

export type Condition = Accepted<typeof ConditionSchema>;
