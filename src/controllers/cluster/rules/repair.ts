/** Rules that replace members that will not come back, and clear what they leave in etcd. */
import { healthyVoters } from '../disruption.ts';
import { etcdStep } from '../etcd-calls.ts';
import { type Decided, entriesOf, isFormed, type Observed } from '../observed.ts';
import { blockedBy, lossOf, replacing } from '../replacement.ts';

export function replaceLost(o: Observed): Decided {
  if (!isFormed(o)) return undefined;
  for (const m of o.members) {
    const loss = lossOf(o, m);
    if (loss !== undefined && blockedBy(o, m) === undefined) return replacing(o, m, `replacing ${loss}`);
  }
  return undefined;
}

/** The alarm of a member that is gone keeps all others from writing. */
export function clearAlarm(o: Observed): Decided {
  const entries = entriesOf(o);
  if (!entries || o.etcd.is !== 'answers' || healthyVoters(o).length === 0) return undefined;
  const stale = o.etcd.alarms.find(({ id, alarm }) => alarm === 'CORRUPT' && !entries.some((e) => e.id === id));
  return stale
    ? {
        message: `the member whose data was corrupt (${stale.id}) is gone: clearing its alarm`,
        steps: [etcdStep(o, { name: 'disarmCorrupt', id: stale.id }, stale.id)],
      }
    : undefined;
}
