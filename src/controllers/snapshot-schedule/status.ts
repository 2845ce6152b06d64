/** The status, conditions and Events of a schedule, computed in every reconcile whichever rule decided. */
import type { EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { type ConditionUpdate, changedConditions, findCondition, updateConditions } from '../../domain/conditions.ts';
import { MAX_MISSED } from '../../domain/due-times.ts';
import { identity, isBeingDeleted } from '../../domain/ownership.ts';
import { dataBytesFor, mebibytes } from '../../domain/restore-space.ts';
import { MAX_REQUEUE_MS } from '../../domain/timing.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import { present } from '../../lib/present.ts';
import { quantityBytes } from '../../lib/quantity.ts';
import { iso } from '../../lib/time.ts';
import type { EventRecord } from '../../runtime/plan.ts';
import { COPY_RETENTION_APPLIED, COPY_SUCCEEDED, copyConditions, copyPruneResult } from './copies.ts';
import { LOCATION_USABLE, locationCondition, locationPollMs, probeResult } from './location.ts';
import { dueTimeIn, isActive, type Observed, statusBefore } from './observed.ts';
import { drillResult, isInconclusive, isPruned, pruneResult, type RunHistory, runHistoryOf } from './run-history.ts';
import { announced, type Scheduling, schedulingOf } from './scheduling.ts';
import { SNAPSHOTS_INTACT, scrubbedCondition, scrubEvent, scrubIntervalMs, scrubResult } from './scrubbing.ts';
import { drillBlockedBy, isDrillDue, pruneBlockedBy } from './stored-jobs.ts';

export const SCHEDULED = 'Scheduled';
export const SNAPSHOT_SUCCEEDED = 'SnapshotSucceeded';
export const RETENTION_APPLIED = 'RetentionApplied';
export const DRILL_SUCCEEDED = 'DrillSucceeded';

export function statusOf(o: Observed): EtcdSnapshotScheduleStatus {
  const before = statusBefore(o);
  if (isBeingDeleted(o.object)) return before;
  const scheduling = schedulingOf(o);
  const { nextScheduleTime: _next, active: _active, nextScrubTime, ...facts } = { ...before, ...runHistoryOf(o) };
  const next = nextTime(o, scheduling);
  const active = o.runs.filter(isActive).map((run) => ({ name: identity(run).name }));
  const updates = [
    scheduled(o, scheduling),
    ...succeeded(o, facts),
    ...retained(o),
    ...drilled(o, facts),
    ...scrubbedCondition(o, facts),
    ...locationCondition(o, facts),
    ...copyConditions(o, facts),
  ];
  const dropped = [RETENTION_APPLIED, DRILL_SUCCEEDED, SNAPSHOTS_INTACT, COPY_SUCCEEDED, COPY_RETENTION_APPLIED].filter(
    (type) => !updates.some((v) => v.type === type),
  );
  const at = { generation: o.object.metadata.generation, now: iso(o.now) };
  return {
    ...facts,
    ...(scrubIntervalMs(o.object) !== undefined && present({ nextScrubTime })),
    ...(next !== undefined && { nextScheduleTime: iso(next) }),
    ...(active.length > 0 && { active }),
    conditions: [...updateConditions(before.conditions, updates, at, dropped)],
  };
}

/** A snapshot that waits for another one is still the next. */
function nextTime(o: Observed, scheduling: Scheduling): number | undefined {
  if (scheduling.is === 'off') return undefined;
  if (scheduling.is !== 'held') return scheduling.dueTimes.next?.at;
  return announced(o) <= o.now ? announced(o) : scheduling.held.at;
}

function scheduled(o: Observed, scheduling: Scheduling): ConditionUpdate {
  const type = SCHEDULED;
  if (scheduling.is === 'off') return { type, status: 'False', reason: scheduling.reason, message: scheduling.message };
  if (scheduling.is === 'held') {
    const { reason, message } = scheduling;
    return { type, status: reason === 'NameConflict' ? 'False' : 'True', reason, message };
  }
  if (o.refusal !== undefined)
    return { type, status: 'False', reason: 'Refused', message: `no snapshot can be created: ${o.refusal}` };
  const next = scheduling.dueTimes.next?.at;
  const when = next === undefined ? 'no snapshot is scheduled any more' : `the next snapshot starts at ${iso(next)}`;
  return { type, status: 'True', reason: 'Scheduled', message: when };
}

function succeeded(o: Observed, { lastSuccessful, lastFailed }: RunHistory): readonly ConditionUpdate[] {
  const type = SNAPSHOT_SUCCEEDED;
  const slot = (name: string | undefined): number =>
    name === undefined ? Number.NEGATIVE_INFINITY : dueTimeIn(o, name);
  if (lastFailed && slot(lastFailed.name) > slot(lastSuccessful?.name)) {
    const { name, reason, message } = lastFailed;
    return [{ type, status: 'False', reason, message: `${name} failed: ${message}` }];
  }
  if (!lastSuccessful) return [];
  const { name, artifact } = lastSuccessful;
  return [{ type, status: 'True', reason: 'SnapshotStored', message: `${name} is stored at ${artifact.uri}` }];
}

function retained(o: Observed): readonly ConditionUpdate[] {
  const type = RETENTION_APPLIED;
  if (!o.object.spec.retention) return [];
  const held = pruneBlockedBy(o);
  if (held !== undefined) return [{ type, status: 'False', reason: 'DrillFailed', message: held }];
  const previous = findCondition(statusBefore(o).conditions, type);
  const ended = pruneResult(o);
  if (ended?.is === 'failed')
    return [{ type, status: 'False', reason: ended.reason, message: `retention failed: ${ended.message}` }];
  const { stored, lastSuccessful } = { ...statusBefore(o), ...runHistoryOf(o) };
  if (stored && (isPruned(o) || ended?.is === 'done')) {
    const message = `${stored.kept} snapshots are kept and ${stored.removed} were removed after ${stored.for}`;
    return [{ type, status: 'True', reason: 'Applied', message: `${message}${heldByStore(stored)}` }];
  }
  // The previous condition is kept until the result of the Job is known.
  if (previous && lastSuccessful) return [previous];
  const waits = o.operatorImage === '' ? 'the operator image is not configured' : 'no snapshot is stored yet';
  const [reason, message] =
    lastSuccessful && o.operatorImage !== '' ? ['Applying', `after ${lastSuccessful.name}`] : ['Waiting', waits];
  return [{ type, status: 'Unknown', reason: reason ?? '', message: message ?? '' }];
}

/** What is still billed, although the retention does not keep it. */
function heldByStore({ locked = 0, hidden = 0 }: NonNullable<EtcdSnapshotScheduleStatus['stored']>): string {
  const lock =
    locked > 0 ? `; ${locked} of those kept are locked by the store, and are removed when it allows that` : '';
  const versions = 'the bucket keeps them as older versions: set a lifecycle rule that expires noncurrent versions';
  return `${lock}${hidden > 0 ? `; ${hidden} of those removed are still stored, because ${versions}` : ''}`;
}

function drilled(o: Observed, { lastDrill }: RunHistory): readonly ConditionUpdate[] {
  const type = DRILL_SUCCEEDED;
  if (!o.object.spec.drill) return [];
  const held = drillBlockedBy(o);
  const also = held === undefined ? '' : `; ${held}`;
  if (lastDrill?.succeeded === false) {
    const { reason = 'DrillFailed', message = '', name } = lastDrill;
    const what = isInconclusive(reason)
      ? `the drill of ${name} could not be finished`
      : `${name} could not be restored`;
    return [{ type, status: 'False', reason, message: `${what}: ${message}${also}` }];
  }
  if (lastDrill) {
    const { name, revision, totalKeys, hashCompared, recoverySeconds } = lastDrill;
    const compared = `revision ${revision} and ${totalKeys} keys${hashCompared === true ? ' with their hash' : ''}`;
    const time = recoverySeconds === undefined ? '' : ` in ${recoverySeconds} s`;
    const message = `${name} was restored${time}, and ${compared} compared${also}`;
    const lack = volumeLack(o, name);
    if (lack !== undefined)
      return [{ type, status: 'False', reason: 'VolumeTooSmall', message: `${message}. But ${lack}` }];
    return [{ type, status: 'True', reason: 'Restored', message }];
  }
  const message =
    held ?? (isDrillDue(o) ? 'the restore drill of the last snapshot is running' : 'no snapshot is stored yet');
  return [{ type, status: 'Unknown', reason: 'Waiting', message }];
}

/** Why the snapshot would not fit into the volumes of the cluster's own spec: the scratch space of the drill is larger. */
function volumeLack(o: Observed, name: string): string | undefined {
  const { lastSuccessful } = statusBefore(o);
  const run = o.runs.find((each) => identity(each).name === name);
  const artifact = lastSuccessful?.name === name ? lastSuccessful.artifact : run?.status?.artifact;
  const size = o.cluster?.spec.storage?.size;
  if (artifact?.databaseBytes === undefined || size === undefined) return undefined;
  const needed = dataBytesFor(artifact.databaseBytes);
  return needed <= quantityBytes(size)
    ? undefined
    : `a restore into the spec of the cluster would fail: its database needs ${mebibytes(needed)}, and storage.size is ${size}. Set a larger storage.size`;
}

/** Event reasons of conditions that are False. */
const EVENTS: Readonly<Record<string, string>> = {
  [SNAPSHOT_SUCCEEDED]: 'SnapshotFailed',
  [RETENTION_APPLIED]: 'RetentionFailed',
  [LOCATION_USABLE]: 'LocationNotUsable',
  [COPY_SUCCEEDED]: 'CopyFailed',
  [COPY_RETENTION_APPLIED]: 'RetentionFailed',
};

export function eventsFor(o: Observed, after: EtcdSnapshotScheduleStatus): readonly EventRecord[] {
  const before = statusBefore(o);
  if (isBeingDeleted(o.object)) return [];
  const news = changedConditions(before.conditions, after.conditions)
    .filter(
      ({ type, reason, status }) =>
        ![DRILL_SUCCEEDED, SNAPSHOTS_INTACT].includes(type) && reason !== 'Scheduled' && status !== 'Unknown',
    )
    .map(({ type, status, reason, message }): EventRecord => {
      const isFine = status === 'True' || reason === 'Suspended';
      return { type: isFine ? 'Normal' : 'Warning', reason: isFine ? reason : (EVENTS[type] ?? reason), note: message };
    });
  return [...missedEvent(o), ...news, ...drillEvent(o, after), ...scrubEvent(o, after)];
}

function drillEvent(o: Observed, { lastDrill, conditions }: EtcdSnapshotScheduleStatus): readonly EventRecord[] {
  if (!lastDrill || sameJson(lastDrill, statusBefore(o).lastDrill)) return [];
  const note = findCondition(conditions, DRILL_SUCCEEDED)?.message ?? '';
  return lastDrill.succeeded
    ? [{ type: 'Normal', reason: 'DrillSucceeded', note }]
    : [{ type: 'Warning', reason: 'DrillFailed', note }];
}

/** Emitted once, in the reconcile that writes the next nextScheduleTime, and not about times at which the schedule was off. */
function missedEvent(o: Observed): readonly EventRecord[] {
  const previous = findCondition(statusBefore(o).conditions, SCHEDULED);
  const scheduling = schedulingOf(o);
  const wasOn = previous?.status === 'True' && previous.observedGeneration === o.object.metadata.generation;
  if (!wasOn || scheduling.is === 'off' || scheduling.is === 'held') return [];
  const { missed } = scheduling.dueTimes;
  const count = scheduling.is === 'due' ? missed - 1 : missed;
  if (count <= 0) return [];
  const many =
    missed >= MAX_MISSED
      ? `${MAX_MISSED} or more snapshots were`
      : count === 1
        ? '1 snapshot was'
        : `${count} snapshots were`;
  const now =
    scheduling.is === 'due'
      ? `only that of ${iso(scheduling.due.slot)} is taken now`
      : 'startingDeadlineSeconds has passed';
  return [{ type: 'Warning', reason: 'MissedSchedule', note: `${many} missed since ${iso(announced(o))}: ${now}` }];
}

/** Requeue exactly when the next snapshot is due. */
export function requeueAfterMs(o: Observed): number {
  const scheduling = schedulingOf(o);
  const next = scheduling.is === 'off' ? undefined : scheduling.dueTimes.next?.at;
  const settled = [pruneResult(o), drillResult(o), scrubResult(o), probeResult(o), copyPruneResult(o)].flatMap((job) =>
    job?.is === 'running' ? (job.until ?? []) : [],
  );
  const scrub = scrubIntervalMs(o.object) === undefined ? Number.NaN : Date.parse(runHistoryOf(o).nextScrubTime ?? '');
  const times = [...settled, ...(next === undefined ? [] : [next]), ...(scrub > o.now ? [scrub] : [])];
  const delays = times.map((at) => Math.max(0, at - o.now));
  return Math.min(MAX_REQUEUE_MS, locationPollMs(o), ...delays);
}
