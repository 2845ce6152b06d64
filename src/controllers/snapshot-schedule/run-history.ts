/** The results of snapshots and Jobs so far: recorded before their objects are deleted. */

import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { ABOUT_ANNOTATION } from '../../api/names.ts';
import { OUT_OF_MEMORY } from '../../domain/agent-result.ts';
import { findCondition } from '../../domain/conditions.ts';
import { identity } from '../../domain/ownership.ts';
import { present } from '../../lib/present.ts';
import { iso } from '../../lib/time.ts';
import { jobNames, policyOf } from './build.ts';
import { copyHistory } from './copies.ts';
import { type JobResult, jobResultOf } from './job-result.ts';
import { locationHistory } from './location.ts';
import { dueTimeIn, hasFailed, isStored, newestRun, type Observed, statusBefore } from './observed.ts';
import { lastStarted } from './scheduling.ts';
import { scrubHistory } from './scrubbing.ts';

export const RECORDED = [
  'lastScheduleTime',
  'lastSuccessful',
  'lastFailed',
  'successes',
  'stored',
  'lastDrill',
  'lastRestored',
  'nextScrubTime',
  'lastScrub',
  'scrubbed',
  'location',
  'copies',
] as const;
export type RunHistory = Pick<EtcdSnapshotScheduleStatus, (typeof RECORDED)[number]>;

/** The snapshot that it is about. */
type Recorded<Task extends 'prune' | 'drill'> = JobResult<Task> & { readonly about: string };

/** The result of the last Job, whatever was stored since it was created; `undefined`: there is none. */
export const pruneResult = (o: Observed): Recorded<'prune'> | undefined => lastResult(o, 'prune');
export const drillResult = (o: Observed): Recorded<'drill'> | undefined => lastResult(o, 'drill');

function lastResult<Task extends 'prune' | 'drill'>(o: Observed, task: Task): Recorded<Task> | undefined {
  const last = o.jobs
    .map((owned) => ({ owned, about: owned.job.metadata.annotations?.[ABOUT_ANNOTATION] ?? '' }))
    .filter(({ owned, about }) => owned.job.metadata.name === jobNames(o.object, about)[task])
    .toSorted((a, b) => dueTimeIn(o, a.about) - dueTimeIn(o, b.about))
    .at(-1);
  return last && { ...jobResultOf(last.owned, task, o.now), about: last.about };
}

/** A due time recorded by a clock that was ahead would stay the last one for ever. */
const knownDueTime = (o: Observed, name: string | undefined): number => {
  const slot = name === undefined ? Number.NEGATIVE_INFINITY : dueTimeIn(o, name);
  return slot <= o.now ? slot : Number.NEGATIVE_INFINITY;
};

const isKnown = (o: Observed, { about }: { readonly about: string }, recorded: string | undefined): boolean =>
  dueTimeIn(o, about) <= knownDueTime(o, recorded);

const endedAt = (o: Observed, { status }: EtcdSnapshot): string => status?.completionTime ?? iso(o.now);

export function runHistoryOf(o: Observed): RunHistory {
  const before = statusBefore(o);
  const last = lastStarted(o);
  return {
    ...before,
    ...(last !== undefined && { lastScheduleTime: iso(last) }),
    ...successes(o),
    ...failure(o),
    ...pruned(o),
    ...drilled(o),
    ...scrubHistory(o),
    ...locationHistory(o),
    ...copyHistory(o),
  };
}

function successes(o: Observed): RunHistory {
  const before = statusBefore(o);
  const known = knownDueTime(o, before.lastSuccessful?.name);
  const fresh = o.runs.filter((run) => {
    const slot = dueTimeIn(o, identity(run).name);
    return isStored(run) && slot > known && slot <= o.now;
  });
  const newest = fresh.at(-1);
  const artifact = newest?.status?.artifact;
  if (!newest || !artifact) return {};
  return {
    lastSuccessful: { name: identity(newest).name, time: endedAt(o, newest), artifact },
    successes: (before.successes ?? 0) + fresh.length,
  };
}

function failure(o: Observed): RunHistory {
  const failed = newestRun(o, hasFailed);
  if (!failed || dueTimeIn(o, identity(failed).name) <= knownDueTime(o, statusBefore(o).lastFailed?.name)) return {};
  const { reason = 'Failed', message = 'no reason was reported' } =
    findCondition(failed.status?.conditions, 'Ready') ?? {};
  return { lastFailed: { name: identity(failed).name, time: endedAt(o, failed), reason, message } };
}

function pruned(o: Observed): RunHistory {
  const { stored } = statusBefore(o);
  const ended = pruneResult(o);
  const policy = policyOf(o.object);
  if (ended?.is !== 'done' || (stored?.policy === policy && isKnown(o, ended, stored.for))) return {};
  const { kept, removed, locked, hidden } = ended.result;
  return { stored: { kept, removed, ...present({ locked, hidden }), time: iso(ended.at), for: ended.about, policy } };
}

/** The current retention was applied after the last stored snapshot. */
export function isPruned(o: Observed): boolean {
  const { stored, lastSuccessful } = statusBefore(o);
  return stored?.for === lastSuccessful?.name && stored?.policy === policyOf(o.object);
}

/** Reasons of drills that failed before they tested the snapshot: they prove nothing about it. */
const INCONCLUSIVE: readonly string[] = ['StoreUnreachable', 'AccessDenied', 'NoSpace', OUT_OF_MEMORY];
export const isInconclusive = (reason: string | undefined): boolean => INCONCLUSIVE.includes(reason ?? '');

/** The last snapshot that a drill could not restore, while no later drill has restored one. */
export function unrestored({
  lastDrill,
}: Pick<RunHistory, 'lastDrill'>): { readonly name: string; readonly reason: string } | undefined {
  if (!lastDrill || lastDrill.succeeded) return undefined;
  const { name, reason = '', earlierFailure } = lastDrill;
  return isInconclusive(reason) ? earlierFailure : { name, reason };
}

function drilled(o: Observed): RunHistory {
  const before = statusBefore(o);
  const ended = drillResult(o);
  if (!ended || ended.is === 'running' || isKnown(o, ended, before.lastDrill?.name)) return restored(o, before);
  const since = o.runs.filter((run) => isStored(run) && dueTimeIn(o, identity(run).name) > dueTimeIn(o, ended.about));
  const common = {
    name: ended.about,
    time: iso(ended.at),
    after: Math.max(0, (before.successes ?? 0) - since.length),
  };
  if (ended.is === 'failed') {
    const { reason, message } = ended;
    const earlierFailure = isInconclusive(reason) ? unrestored(before) : undefined;
    return { lastDrill: { ...common, succeeded: false, reason, message, ...(earlierFailure && { earlierFailure }) } };
  }
  const { revision, totalKeys, hashCompared, recoveryMilliseconds: took } = ended.result;
  const measured = took !== undefined && { recoverySeconds: Math.ceil(took / 1000) };
  return restored(o, { lastDrill: { ...common, succeeded: true, revision, totalKeys, hashCompared, ...measured } });
}

/** A drill that succeeded names the snapshot that retention protects; an earlier operator recorded only the drill. */
function restored(o: Observed, facts: Pick<RunHistory, 'lastDrill' | 'lastRestored'>): RunHistory {
  const { lastDrill, lastRestored } = facts;
  if (!lastDrill?.succeeded || lastRestored?.name === lastDrill.name) return {};
  const { name, time } = lastDrill;
  const run = o.runs.find((each) => identity(each).name === name);
  const known = {
    uid: run && identity(run).uid,
    uri: run?.status?.artifact?.uri,
    takenAt: run?.status?.artifact?.takenAt,
  };
  return { lastDrill, lastRestored: { name, time, ...present(known) } };
}
