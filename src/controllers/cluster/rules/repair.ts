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

const BLOCKING: Readonly<Record<string, 'corrupt' | 'noSpace'>> = { CORRUPT: 'corrupt', NOSPACE: 'noSpace' };

/**
 * The alarm of a removed member keeps all others from accepting writes. A snapshot has the alarms of its members as well:
 * without this, a cluster that is restored into a larger volume after its database was full would refuse writes for ever.
 */
export function clearAlarm(o: Observed): Contributed {
  const entries = entriesOf(o);
  if (!entries || o.etcd.is !== 'answers' || healthyVoters(o).length === 0) return undefined;
  const stale = o.etcd.alarms.find(({ id, alarm }) => alarm in BLOCKING && !entries.some((e) => e.id === id));
  const alarm = stale && BLOCKING[stale.alarm];
  return stale && alarm
    ? {
        message: `disarming the ${stale.alarm} alarm of member ${stale.id}, which is not on the member list`,
        sequences: [[etcdStep(o, { name: 'disarm', alarm, id: stale.id }, stale.id)]],
      }
    : undefined;
}
