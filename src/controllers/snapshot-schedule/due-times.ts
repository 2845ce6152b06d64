/** When snapshots are due: from the schedule, what was begun, and the clock. */
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { type Cron, lastUntil, nextAfter, parseCron } from '../../lib/cron.ts';
import { hash32 } from '../../lib/hash.ts';

/** A minute of the schedule, and the moment at which its snapshot begins. */
export interface DueTime {
  readonly slot: number;
  readonly at: number;
}

export interface DueTimes {
  /** The newest whose moment has come and for which none was begun. */
  readonly due?: DueTime;
  readonly next?: DueTime;
  /** How many others have come since the last look, and nobody began them; at most MOST. */
  readonly missed: number;
}

export type Timetable = { readonly ok: true; readonly cron: Cron } | { readonly ok: false; readonly why: string };

export const timetable = ({ spec }: EtcdSnapshotSchedule): Timetable => parseCron(spec.schedule, spec.timeZone);

/** Nobody wants to know the exact number, and a schedule of every minute may have been away for years. */
export const MAX_MISSED = 20;
/** A clock that is put back by less goes on as if nothing was. */
const TOLERANCE_MS = 60_000;

/** Always the same for one minute of one schedule. Never into the next minute that it names: their order must stay. */
function dueTimeAt(cron: Cron, schedule: EtcdSnapshotSchedule, slot: number): DueTime {
  const most = (schedule.spec.jitterSeconds ?? 0) * 1000;
  if (most === 0) return { slot, at: slot };
  const room = Math.min(most, (nextAfter(cron, slot) ?? Number.POSITIVE_INFINITY) - slot - 1000);
  const steps = Math.floor(Math.max(0, room) / 1000) + 1;
  return { slot, at: slot + (hash32(`${schedule.metadata.uid}/${slot}`) % steps) * 1000 };
}

/** The last minute for which one was begun. What is later than the clock was recorded by one that was wrong. */
export function startedUntil(recorded: string | undefined, now: number): number | undefined {
  const last = recorded === undefined ? Number.NaN : Date.parse(recorded);
  if (Number.isNaN(last)) return undefined;
  return last <= now + TOLERANCE_MS ? last : now;
}

export function dueTimesOf(
  cron: Cron,
  schedule: EtcdSnapshotSchedule,
  { now, begun, announced }: { readonly now: number; readonly begun: number | undefined; readonly announced: number },
): DueTimes {
  const created = Date.parse(schedule.metadata.creationTimestamp ?? '') || 0;
  const since = Math.max(created, begun ?? 0);
  const at = (slot: number): DueTime => dueTimeAt(cron, schedule, slot);
  const open = (slot: number | undefined): slot is number => slot !== undefined && slot > since;
  const latest = lastUntil(cron, now);
  const waits = open(latest) && at(latest).at > now ? at(latest) : undefined;
  const newest = waits ? lastUntil(cron, waits.slot - 1) : latest;
  const following = nextAfter(cron, Math.max(now, since));
  const next = waits ?? (following === undefined ? undefined : at(following));
  let missed = 0;
  for (
    let slot = newest;
    open(slot) && at(slot).at >= announced && missed < MAX_MISSED;
    slot = lastUntil(cron, slot - 1)
  )
    missed += 1;
  return { ...(open(newest) && { due: at(newest) }), ...(next && { next }), missed };
}
