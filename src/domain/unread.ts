/** Objects that could not be read: a fact, not a failure of the reconcile. */
import type { Blocked } from './disruption.ts';
import type { Holding } from './ownership.ts';
import { UNREADABLE_RECHECK_MS } from './timing.ts';

/** An object that is read by name; `unknown` when the read failed, so that the operator neither creates nor patches it. */
export type ReadHolding<T> = Holding<T> | { readonly is: 'unknown'; readonly message: string };

/** As a sentence, if it could not be read. */
export const unreadObject = (kind: string, name: string, holding: ReadHolding<unknown>): readonly string[] =>
  holding.is === 'unknown' ? [`${kind} ${name} cannot be read: ${holding.message}`] : [];

/** Whether these objects match the spec is unknown. */
export const readFailed = (objects: readonly string[]): Blocked | undefined =>
  objects.length === 0
    ? undefined
    : {
        reason: 'ReadFailed',
        message: `${objects.join('; ')}. It is neither created nor corrected until it can be read; it is read again every ${UNREADABLE_RECHECK_MS / 1_000} s`,
      };
