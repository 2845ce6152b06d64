/** The rule that restarts a member whose wrong view of its peers keeps the membership from changing. */
import { iso } from '../../../lib/time.ts';
import { type Decided, nameOf, type Observed } from '../observed.ts';
import { refusedChange, type WantedChange } from '../refused-changes.ts';
import { restarting } from '../rollout/restart.ts';

/**
 * Restarts one member at a time, each at most once per change, so that a wrong diagnosis does not restart members for ever. The
 * uid of the Pod is recorded first, so after a crash the operator restarts the same Pod and no second one.
 */
export const restartRefusing =
  (wantedBy: WantedChange) =>
  (o: Observed): Decided => {
    const { next, change = '', restarts = [], blockedBy } = refusedChange(o, wantedBy) ?? {};
    if (!next || blockedBy !== undefined || next.m.pod.is !== 'present') return undefined;
    const message = `restarting ${nameOf(next.m)}: every voter refuses to ${change}, although all are healthy`;
    const decision = restarting(o, { m: next.m, message, reason: 'RestartingMember' });
    if (next.recorded) return decision;
    const record = { member: nameOf(next.m), pod: next.m.pod.uid ?? '', at: iso(o.now) };
    return { ...decision, latch: { ...decision.latch, refusedChange: { change, restarts: [...restarts, record] } } };
  };
