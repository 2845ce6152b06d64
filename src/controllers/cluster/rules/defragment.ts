/** Rules that carry out an EtcdDefrag: one member at a time, out of the client Service, the leader last. */
import { quotaOf } from '../../../api/defaults.ts';
import type { EtcdDefrag, MemberOutcome } from '../../../api/etcd-defrag.ts';
import { belowThreshold, isDone, mebibytes, timeLimitMs } from '../../../domain/defragmentation.ts';
import { identity } from '../../../domain/ownership.ts';
import {
  DEFRAG_QUIET_MS,
  DEFRAG_RECHECK_MS,
  DISRUPTION_RECHECK_MS,
  DRAIN_MS,
  UNHEALTHY_RESYNC_MS,
} from '../../../domain/timing.ts';
import { sameJson } from '../../../lib/merge-patch.ts';
import { iso } from '../../../lib/time.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import type { ClusterCall, DefragmentCall } from '../calls.ts';
import {
  defragmentedOutcome,
  hasStopped,
  isMarkerOver,
  isOverdue,
  type Marker,
  markerOf,
  memberNamed,
  membersPatch,
  outcomeOf,
  outcomePatch,
  requestOf,
  workList,
} from '../defragmentation.ts';
import { blockedBy } from '../disruption-view.ts';
import { atVoters, endpointsOf, etcdStep, transferFirst } from '../etcd-calls.ts';
import { droppedBy } from '../managed-objects.ts';
import {
  type ClusterDecision,
  type Contributed,
  type Decided,
  entryOf,
  isNotBeingDeleted,
  type MemberView,
  nameOf,
  type Observed,
} from '../observed.ts';
import { votersOf } from '../quorum.ts';
import { fits, wantsRemedy } from '../remedy.ts';
import { leaderLast } from '../rollout/order.ts';
import { drainingForMs, trafficPatch } from '../rollout/restart.ts';

const MAX_ATTEMPTS = 3;

const remainingMember = (o: Observed, name: string): MemberView | undefined => {
  const m = memberNamed(o, name);
  return m && isNotBeingDeleted(m) ? m : undefined;
};

export function defragment(o: Observed): Decided {
  const { defrag } = o;
  const marker = markerOf(o);
  if (marker && !isMarkerOver(o)) {
    const m = memberNamed(o, marker.member);
    const message = `${marker.member} is being defragmented for EtcdDefrag ${marker.defrag}`;
    return { message, requeueAfterMs: DISRUPTION_RECHECK_MS, ...(m && { restarts: m }) };
  }
  if (!defrag) return undefined;
  const list = workList(o, defrag);
  const open = list.filter(({ outcome }) => outcome === 'Pending');
  const gone = open.find(({ name }) => !remainingMember(o, name));
  if (gone) return recorded(o, defrag, { ...gone, outcome: 'Skipped', reason: 'MemberGone', finishedAt: iso(o.now) });
  const [next] = leaderLast(
    o,
    open.flatMap(({ name }) => remainingMember(o, name) ?? []),
  );
  const outcome = list.find(({ name }) => next && name === nameOf(next));
  if (!next || !outcome) return undefined;
  return nextStep(o, defrag, next, outcome);
}

const recorded = (o: Observed, defrag: EtcdDefrag, outcome: MemberOutcome): ClusterDecision => ({
  message: `EtcdDefrag ${defrag.metadata.name}: ${outcome.name} is ${outcome.outcome} (${outcome.reason})`,
  steps: [outcomePatch(o, defrag, outcome)],
});

function nextStep(o: Observed, defrag: EtcdDefrag, m: MemberView, outcome: MemberOutcome): ClusterDecision {
  const unrecorded = markerDropped(o);
  if (unrecorded) return { ...waiting(o, defrag, unrecorded.message), requeueAfterMs: unrecorded.retryInMs };
  const blocked = blockedBy(o, entryOf(o, m)?.id, 'defragment');
  // The end of another run enqueues the cluster.
  if (blocked?.reason === 'FleetBusy')
    return { ...waiting(o, defrag, blocked.message), requeueAfterMs: DEFRAG_RECHECK_MS };
  if (blocked || !m.self) return waiting(o, defrag, blocked?.message ?? `${nameOf(m)} does not respond`);
  const list = workList(o, defrag);
  const named = `EtcdDefrag ${defrag.metadata.name}`;
  if (!sameJson(list, defrag.status?.members ?? []))
    return { message: `${named}: recording which members are defragmented`, steps: [membersPatch(defrag, list)] };
  const size = { bytes: m.self.databaseBytes, bytesInUse: m.self.databaseBytesInUse, quotaBytes: quotaOf(m.object) };
  const unworthy = belowThreshold(defrag.spec.rule, size);
  if (unworthy !== undefined) {
    const { bytes: dbSizeBefore } = size;
    const skipped = { outcome: 'Skipped', reason: 'BelowThreshold', message: unworthy, dbSizeBefore };
    return recorded(o, defrag, { ...outcome, ...skipped, finishedAt: iso(o.now) });
  }
  const message = `${nameOf(m)} is defragmented for ${named}`;
  return { ...(away(o, m, message) ?? started(o, defrag, m, outcome, message)), restarts: m };
}

/** Each attempt takes a member out of the client Service, and perhaps the leadership from it. */
const markerDropped = (o: Observed) =>
  droppedBy(o).find(({ fields = [], retryInMs }) => retryInMs > 0 && fields.some((field) => field.startsWith(MARKER)));
const MARKER = 'status.defragmentation';

function waiting(o: Observed, defrag: EtcdDefrag, why: string): ClusterDecision {
  const message = `EtcdDefrag ${defrag.metadata.name} waits: ${why}`;
  const requeueAfterMs = UNHEALTHY_RESYNC_MS; // events of Pods, members and snapshots come first
  const times = (defrag.status?.members ?? []).flatMap(({ finishedAt }) => finishedAt ?? []);
  const isQuiet = times.some((time) => o.now - Date.parse(time) < DEFRAG_QUIET_MS);
  if (isQuiet || defrag.status?.waitingFor === why) return { message, requeueAfterMs };
  const fields = { status: { waitingFor: why } };
  const to = refTo('EtcdDefrag', defrag);
  return { message, requeueAfterMs, steps: [{ do: 'patch', to, subresource: 'status', fields }] };
}

/** What happens before etcd is asked: no other member is out of the client Service, another one leads, and this one gets no new clients. */
function away(o: Observed, m: MemberView, message: string): ClusterDecision | undefined {
  const returning = o.members.find((each) => each !== m && drainingForMs(o, each) !== undefined);
  if (returning) {
    const text = `${message}, when ${nameOf(returning)} is back in the client Service`;
    return { message: text, requeueAfterMs: DISRUPTION_RECHECK_MS };
  }
  if (votersOf(o).length === 1) return undefined;
  const transfer = transferFirst(o, entryOf(o, m)?.id, message);
  if (transfer) return transfer;
  const drainedMs = drainingForMs(o, m);
  const text = `${message}; taking it out of the client Service first`;
  if (drainedMs === undefined) return { message: text, steps: [trafficPatch(m, iso(o.now), null)] };
  return drainedMs < DRAIN_MS ? { message: text, requeueAfterMs: DRAIN_MS - drainedMs } : undefined;
}

/** Recorded first: a restarted operator follows what the member answers. */
function started(
  o: Observed,
  defrag: EtcdDefrag,
  m: MemberView,
  outcome: MemberOutcome,
  message: string,
): ClusterDecision {
  const { name: defragName = '', uid = '' } = defrag.metadata;
  const dbSizeBefore = m.self?.databaseBytes ?? 0;
  const attempt = (outcome.attempts ?? 0) + 1;
  const marker = { member: nameOf(m), defrag: defragName, uid, attempt, startedAt: iso(o.now), dbSizeBefore };
  const alone = votersOf(o).length === 1;
  const note = `${message}: the only voter serves no requests until it has finished`;
  return {
    message,
    latch: { defragmentation: marker },
    steps: [request(o, m, marker)],
    ...(alone && { event: { type: 'Warning', reason: 'DefragmentingOnlyVoter', note } }),
  };
}

function request(o: Observed, m: MemberView, marker: Marker): Step<ClusterCall> {
  const { namespace, name } = identity(o.cluster);
  const [endpoint = ''] = endpointsOf(m);
  const { clusterID, hosts } = atVoters(o);
  const call: DefragmentCall = {
    is: 'defragment',
    name: 'defragment',
    target: nameOf(m),
    cluster: `${namespace}/${name}`,
    clusterID,
    hosts,
    endpoint,
    request: requestOf(marker),
    timeoutMs: timeLimitMs(marker.dbSizeBefore),
  };
  return { do: 'call', call, retryMs: DISRUPTION_RECHECK_MS };
}

/** Records what came of the member that etcd was asked to defragment, whatever else the cluster is busy with. */
export function recordDefragmentation(o: Observed): Contributed {
  const marker = markerOf(o);
  const { defrag } = o;
  if (!marker || isMarkerOver(o)) return undefined;
  const before = defrag?.metadata.uid === marker.uid ? outcomeOf(o, defrag, marker.member) : undefined;
  const after = before && outcomeAfter(o, marker, before);
  if (!defrag || !after)
    return { message: `${marker.member} is being defragmented`, requeueAfterMs: DISRUPTION_RECHECK_MS };
  const result =
    after.reclaimedBytes === undefined
      ? `${after.outcome}${after.reason === undefined ? '' : ` (${after.reason})`}`
      : `Defragmented, ${mebibytes(after.reclaimedBytes)} are free`;
  return { message: `${marker.member}: ${result}`, sequences: [[outcomePatch(o, defrag, after)]] };
}

/** `undefined`: etcd has not finished, as far as is known. */
function outcomeAfter(o: Observed, marker: Marker, before: MemberOutcome): MemberOutcome | undefined {
  const m = memberNamed(o, marker.member);
  const { dbSizeBefore } = marker;
  const now = { ...before, dbSizeBefore };
  const finishedAt = iso(o.now);
  const dbSizeAfter = m?.answersReads === true ? m.self?.databaseBytes : undefined;
  const isReported = before.outcome === 'Defragmented';
  if (isReported || o.defragResponse?.is === 'succeeded') {
    if (dbSizeAfter !== undefined) return defragmentedOutcome(before, dbSizeBefore, { dbSizeAfter, finishedAt });
    const { message: _earlier, ...rest } = now;
    const success = { ...rest, outcome: 'Defragmented', reason: 'AfterSizeUnavailable' };
    if (hasStopped(m) || isOverdue(o, marker)) return { ...success, finishedAt };
    return isReported ? undefined : success;
  }
  // No response arrived, or not to this process. A database never shrinks by itself.
  if (dbSizeAfter !== undefined && dbSizeAfter < dbSizeBefore)
    return defragmentedOutcome(before, dbSizeBefore, { dbSizeAfter, finishedAt });
  if (hasStopped(m)) return { ...now, outcome: 'Skipped', reason: 'MemberGone', finishedAt };
  const error = o.defragResponse?.is === 'failed' ? o.defragResponse.message : undefined;
  if (isOverdue(o, marker)) {
    const message = error ?? 'etcd has not finished within the time limit';
    return { ...now, outcome: 'Failed', reason: 'RPCError', message, finishedAt };
  }
  if (dbSizeAfter === undefined || o.defragResponse?.is === 'awaited') return undefined;
  const message = error ?? 'its database is as large as before, and no response of etcd has arrived';
  const failed = { ...now, attempts: marker.attempt, message };
  return marker.attempt < MAX_ATTEMPTS ? failed : { ...failed, outcome: 'Failed', reason: 'RPCError', finishedAt };
}

/** All members have been defragmented, as far as that was possible and worth it: writes are accepted again. With autoRemedy, however they got room. */
export function disarmNoSpace(o: Observed): Contributed {
  const { members = [] } = o.defrag?.status ?? {};
  const isDefragmented = members.every(isDone) && members.some(({ outcome }) => outcome === 'Defragmented');
  if (!isDefragmented && !wantsRemedy(o)) return undefined;
  const alarms = o.etcd.is === 'answers' ? o.etcd.alarms.filter(({ alarm }) => alarm === 'NOSPACE') : [];
  if (alarms.length === 0 || !o.members.every(fits)) return undefined;
  const names = alarms.map(({ id }) => o.members.find(({ self }) => self?.id === id)?.object.metadata.name ?? id);
  const message = `disarming the NOSPACE alarm of ${names.join(', ')}: every database is smaller than its quota again`;
  return {
    message,
    sequences: alarms.map(({ id }) => [etcdStep(o, { name: 'disarm', alarm: 'noSpace', id }, id)]),
    event: { type: 'Normal', reason: 'AlarmDisarmed', note: message },
  };
}
