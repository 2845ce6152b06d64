/** Rules that replace members with failure evidence, and disarm the alarms of removed members. */
import { blockedBy } from '../disruption-view.ts';
import { etcdStep } from '../etcd-calls.ts';
import { type Contributed, type Decided, entriesOf, entryOf, isFormed, type Observed } from '../observed.ts';
import { healthyVoters } from '../quorum.ts';
import { lossOf, replacing } from '../replacement.ts';

export function replaceLost(o: Observed): Decided {
  if (!isFormed(o)) return undefined;
  for (const m of o.members) {
    const loss = lossOf(o, m);
    if (loss !== undefined && !blockedBy(o, entryOf(o, m)?.id, 'replace')) return replacing(o, m, `replacing ${loss}`);
  }
  return undefined;
}

/** The CORRUPT alarm of a removed member keeps all other members from accepting writes. */
export function clearAlarm(o: Observed): Contributed {
  const entries = entriesOf(o);
  if (!entries || o.etcd.is !== 'answers' || healthyVoters(o).length === 0) return undefined;
  const stale = o.etcd.alarms.find(({ id, alarm }) => alarm === 'CORRUPT' && !entries.some((e) => e.id === id));
  return stale
    ? {
        message: `disarming the CORRUPT alarm of member ${stale.id}, which was removed`,
        sequences: [[etcdStep(o, { name: 'disarmCorrupt', id: stale.id }, stale.id)]],
      }
    : undefined;
}
