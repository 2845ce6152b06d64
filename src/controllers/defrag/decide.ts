/** Kinds that the API server accepts and this build does not carry out yet: a condition reports that nothing is started. */
import type { Condition } from '../../api/conditions.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import { updateConditions } from '../../domain/conditions.ts';
import { notYetConditions } from '../../domain/not-yet-supported.ts';
import { iso } from '../../lib/time.ts';
import type { Plan } from '../../runtime/plan.ts';

interface Status {
  readonly phase?: string;
  readonly conditions?: readonly Condition[];
}

export interface Accepted {
  readonly metadata: ObjectMeta;
  readonly status?: Status;
}

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly object: Accepted;
}

/** A finished run of another operator is not changed. */
const hasEnded = ({ phase = '' }: Status): boolean => ['Complete', 'Failed'].includes(phase);

export const decide =
  (kind: string) =>
  ({ now, object }: Observed): Plan<Status> => {
    const message = `${kind} is not supported by this build yet: nothing is started. Delete it, or wait for a later version of the operator`;
    const before: Status = object.status ?? {};
    const updates = notYetConditions([{ subject: 'Defragmentation', message }]);
    const at = { generation: object.metadata.generation, now: iso(now) };
    const status = hasEnded(before)
      ? before
      : { ...before, conditions: updateConditions(before.conditions, updates, at) };
    return { rule: 'notYetSupported', message, steps: [], status, events: [] };
  };
