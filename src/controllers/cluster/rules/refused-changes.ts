/** The rule that restarts a member whose wrong view of its peers keeps the membership from changing. */
import { iso } from '../../../lib/time.ts';
import { type Decided, nameOf, type Observed } from '../observed.ts';
import { refusedChange, type WantedChange } from '../refused-changes.ts';
import { restarting } from '../rollout/restart.ts';

/**
 * One member at a time, each at most once for a change: a wrong guess must not go through restarts for ever. It is recorded
 * with the uid of the Pod before anything is done, so after a crash the same Pod is restarted, and no second one.
 */
export const restartRefusing =
  (wantedBy: WantedChange) =>
  (o: Observed): Decided => {
    const found = refusedChange(o, wantedBy);
    const { next, change = '', restarts = [] } = found ?? {};
    if (!next || found?.blockedBy !== undefined || next.m.pod.is !== 'present') return undefined;
    const why = `${nameOf(next.m)} is restarted: every voter refuses to ${change}, although all are healthy`;
    const answer = restarting(o, { m: next.m, entry: next.entry, why, reason: 'RestartingMember' });
    if (next.recorded) return answer;
    const record = { member: nameOf(next.m), pod: next.m.pod.uid ?? '', at: iso(o.now) };
    return { ...answer, latch: { refusedChange: { change, restarts: [...restarts, record] } } };
  };
