/** Rules that replace members that will not come back, and clear what they leave in etcd. */
import { healthyVoters } from '../disruption.ts';
import { change } from '../etcd-calls.ts';
import { type Answered, entriesOf, isFormed, type Observed } from '../observed.ts';
import { heldUp, lossOf, replacing } from '../replacement.ts';

export function replaceLost(o: Observed): Answered {
  if (!isFormed(o)) return undefined;
  for (const m of o.members) {
    const loss = lossOf(o, m);
    if (loss !== undefined && heldUp(o, m) === undefined) return replacing(o, m, `replacing ${loss}`);
  }
  return undefined;
}

/** The alarm of a member that is gone keeps all others from writing. */
export function clearAlarm(o: Observed): Answered {
  const entries = entriesOf(o);
  if (!entries || o.etcd.is !== 'answers' || healthyVoters(o).length === 0) return undefined;
  const stale = o.etcd.alarms.find(({ id, alarm }) => alarm === 'CORRUPT' && !entries.some((e) => e.id === id));
  return stale
    ? {
        why: `the member whose data was corrupt (${stale.id}) is gone: clearing its alarm`,
        steps: [change(o, { name: 'disarmCorrupt', id: stale.id }, stale.id)],
      }
    : undefined;
}
