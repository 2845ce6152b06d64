/** When the runs of a schedule are due: computed from the schedule, the last started run and the clock. */
import { type Cron, lastUntil, nextAfter } from '../lib/cron.ts';
import { hash32 } from '../lib/hash.ts';
import { CLOCK_TOLERANCE_MS } from './timing.ts';

/** What has a schedule. */
export interface Recurring {
  /** Runs of different seeds are spread over time. */
  readonly seed: string;
  readonly creationTimestamp: string | undefined;
  /** Each run starts up to this many seconds after its time. */
  readonly spreadSeconds: number;
}

/** A minute of the schedule, and when its run starts. */
export interface DueTime {
  readonly slot: number;
  readonly at: number;
}

export interface DueTimes {
  /** The newest due time that has passed and for which no run was started. */
  readonly due?: DueTime;
  readonly next?: DueTime;
  /** How many due times have passed since the announced one without a run; at most MAX_MISSED. */
  readonly missed: number;
}

/** The count is bounded: a schedule of every minute may have been off for years. */
export const MAX_MISSED = 20;

/** The delay is deterministic per seed and minute, and never reaches the next scheduled minute: runs must keep their order. */
function dueTimeAt(cron: Cron, { seed, spreadSeconds }: Recurring, slot: number): DueTime {
  const spreadMs = spreadSeconds * 1000;
  if (spreadMs === 0) return { slot, at: slot };
  const room = Math.min(spreadMs, (nextAfter(cron, slot) ?? Number.POSITIVE_INFINITY) - slot - 1000);
  const steps = Math.floor(Math.max(0, room) / 1000) + 1;
  return { slot, at: slot + (hash32(`${seed}/${slot}`) % steps) * 1000 };
}

/** The last minute for which a run was started. A time in the future was recorded by a clock that was ahead. */
export function startedUntil(recorded: string | undefined, now: number): number | undefined {
  const last = recorded === undefined ? Number.NaN : Date.parse(recorded);
  if (Number.isNaN(last)) return undefined;
  return last <= now + CLOCK_TOLERANCE_MS ? last : now;
}

export function dueTimesOf(
  cron: Cron,
  recurring: Recurring,
  {
    now,
    lastStarted,
    announced,
    immediately = false,
  }: Record<'now' | 'announced', number> & {
    readonly lastStarted: number | undefined;
    /** The first run does not wait for the first scheduled minute. */
    readonly immediately?: boolean;
  },
): DueTimes {
  const created = Date.parse(recurring.creationTimestamp ?? '') || 0;
  const since = Math.max(created, lastStarted ?? 0);
  const at = (slot: number): DueTime => dueTimeAt(cron, recurring, slot);
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
  // Named after the minute of the creation: after a crash, the operator gets AlreadyExists instead of a second one.
  const first = immediately && lastStarted === undefined && { slot: created - (created % 60_000), at: now };
  const due = open(newest) ? at(newest) : first;
  return { ...(due && { due }), ...(next && { next }), missed };
}
