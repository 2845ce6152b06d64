/** Scrubs: when one is due, and what they found. */
import {
  damagedIn,
  type EtcdSnapshotSchedule,
  type EtcdSnapshotScheduleStatus,
} from '../../api/etcd-snapshot-schedule.ts';
import { slotOf } from '../../api/names.ts';
import type { ConditionUpdate } from '../../domain/conditions.ts';
import { identity } from '../../domain/ownership.ts';
import { SCRUB_FIRST_MS, SCRUB_INTERVALS_MS, SCRUB_RETRY_MS } from '../../domain/timing.ts';
import { hash32 } from '../../lib/hash.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import { present } from '../../lib/present.ts';
import { printable } from '../../lib/printable.ts';
import { iso } from '../../lib/time.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { scrubName } from './build-scrub.ts';
import { type JobResult, jobResultOf } from './job-result.ts';
import { type Observed, statusBefore } from './observed.ts';

export const SNAPSHOTS_INTACT = 'SnapshotsIntact';
/** Damaged ones are never dropped for others. */
const MAX_SCRUBBED = 64;

export type ScrubHistory = Pick<EtcdSnapshotScheduleStatus, 'nextScrubTime' | 'lastScrub' | 'scrubbed'>;

/** `undefined`: never. Who asks for drills wants to know whether backups are good. */
export function scrubIntervalMs({ spec }: EtcdSnapshotSchedule): number | undefined {
  const scrub = spec.scrub ?? (spec.drill ? 'Weekly' : 'Never');
  return scrub === 'Never' ? undefined : SCRUB_INTERVALS_MS[scrub];
}

/** The result of the scrub that was due then; `undefined`: its Job was not created, or was deleted. */
function resultOf(o: Observed, due: string): JobResult<'scrub'> | undefined {
  const name = scrubName(o.object, due);
  const owned = o.jobs.find(({ job }) => job.metadata.name === name);
  return owned && jobResultOf(owned, 'scrub', o.now);
}

export const scrubResult = (o: Observed): JobResult<'scrub'> | undefined => {
  const due = statusBefore(o).nextScrubTime;
  return due === undefined ? undefined : resultOf(o, due);
};

/** Schedules that are created together, or that an upgrade of the operator finds, do not all read their stores at once. */
function firstTime(o: Observed, intervalMs: number): number {
  return o.now + SCRUB_FIRST_MS + (hash32(`${identity(o.object).uid}/scrub`) % (intervalMs / 60_000)) * 60_000;
}

/** A time that a clock that was ahead has recorded would stay the next one for too long. */
function plannedTime(o: Observed, intervalMs: number): string {
  const next = Date.parse(statusBefore(o).nextScrubTime ?? '');
  const isPlausible = next <= o.now + 2 * intervalMs;
  return isPlausible ? iso(next) : iso(firstTime(o, intervalMs));
}

/** When the next scrub is due; `undefined`: scrubs are off. */
export function scrubHistory(o: Observed): ScrubHistory {
  const before = statusBefore(o);
  const intervalMs = scrubIntervalMs(o.object);
  if (intervalMs === undefined) return {};
  const nextScrubTime = plannedTime(o, intervalMs);
  const ended = resultOf(o, nextScrubTime);
  if (!ended || ended.is === 'running') return { nextScrubTime };
  const time = iso(ended.at);
  const after = (ms: number): string => iso(Math.max(ended.at, o.now) + ms);
  if (ended.is === 'failed') {
    const { reason, message } = ended;
    return {
      nextScrubTime: after(Math.min(SCRUB_RETRY_MS, intervalMs)),
      lastScrub: { time, succeeded: false, reason, message },
    };
  }
  const { snapshot, sizeBytes, damage, absent = [] } = ended.result;
  const stillStored = (before.scrubbed ?? []).filter(({ name }) => !absent.includes(name));
  // The result comes from a user's namespace: what is no snapshot of this schedule stays out of the status.
  if (!snapshot || slotOf(identity(o.object).name, snapshot.name) === undefined)
    return { nextScrubTime: after(intervalMs), lastScrub: { time, succeeded: true }, scrubbed: stillStored };
  const { name, uid } = snapshot;
  const isDamaged = damage !== undefined && !damagedIn(before).some((each) => each.name === name);
  const found = damage && { reason: damage.reason, message: printable(damage.message) };
  return {
    nextScrubTime: after(isDamaged ? Math.min(SCRUB_RETRY_MS, intervalMs) : intervalMs), // it may not be the only one
    lastScrub: { name, time, succeeded: !damage, ...present({ sizeBytes }), ...found },
    scrubbed: bounded([
      ...stillStored.filter((each) => each.name !== name),
      { name, ...present({ uid }), time, ...found },
    ]),
  };
}

type ScrubbedList = NonNullable<ScrubHistory['scrubbed']>;

function bounded(all: ScrubbedList): ScrubbedList {
  const surplus = all.length - MAX_SCRUBBED;
  const dropped = new Set(all.filter(({ reason }) => reason === undefined).slice(0, Math.max(0, surplus)));
  return all.filter((each) => !dropped.has(each));
}

/** What a scrub waits for; `undefined`: one is due now. */
export function scrubBlockedBy(o: Observed): string | undefined {
  const { nextScrubTime = '', lastSuccessful } = statusBefore(o);
  if (!lastSuccessful) return 'no snapshot is stored yet';
  if (!(Date.parse(nextScrubTime) <= o.now)) return `the next scrub starts at ${nextScrubTime}`;
  if (o.notPermitted !== undefined) return o.notPermitted;
  return o.operatorImage === '' ? 'the operator image is not configured' : undefined;
}

export function scrubbedCondition(o: Observed, { lastScrub, scrubbed }: ScrubHistory): readonly ConditionUpdate[] {
  const type = SNAPSHOTS_INTACT;
  if (scrubIntervalMs(o.object) === undefined) return [];
  const damaged = damagedIn({ ...(scrubbed && { scrubbed }) });
  const [first, ...others] = damaged.toReversed();
  if (first) {
    const also = others.length === 0 ? '' : `; also damaged: ${others.map(({ name }) => name).join(', ')}`;
    const advice = 'Delete it from the store when its copy is not needed, and check the store';
    const message = `${first.name} cannot be restored any more: ${first.message ?? ''}${also}. ${advice}`;
    return [{ type, status: 'False', reason: first.reason, message }];
  }
  if (!lastScrub)
    return [{ type, status: 'Unknown', reason: 'Waiting', message: scrubBlockedBy(o) ?? 'the first scrub is running' }];
  const { name, succeeded, reason = '', message = '' } = lastScrub;
  if (!succeeded)
    return [{ type, status: 'Unknown', reason, message: `the last scrub could not be finished: ${message}` }];
  if (name === undefined)
    return [
      {
        type,
        status: 'Unknown',
        reason: 'Waiting',
        message: 'the last scrub found no snapshot of this schedule in the store',
      },
    ];
  return [{ type, status: 'True', reason: 'Intact', message: `${name} was read, and is as it was when it was stored` }];
}

export function scrubEvent(o: Observed, { lastScrub }: ScrubHistory): readonly EventRecord[] {
  if (!lastScrub || sameJson(lastScrub, statusBefore(o).lastScrub)) return [];
  const { name, succeeded, message = '' } = lastScrub;
  if (name === undefined)
    return succeeded
      ? []
      : [{ type: 'Warning', reason: 'ScrubFailed', note: `the scrub could not be finished: ${message}` }];
  return succeeded
    ? [{ type: 'Normal', reason: 'ScrubSucceeded', note: `${name} was read, and is as it was when it was stored` }]
    : [{ type: 'Warning', reason: 'StoredSnapshotDamaged', note: `${name} cannot be restored any more: ${message}` }];
}
