/** The rule that ends a NOSPACE alarm: compacts, asks for a defragmentation, and records what came of it. `disarmNoSpace` disarms. */

import type { EtcdDefrag } from '../../../api/etcd-defrag.ts';
import type { RemedyStatus } from '../../../api/maintenance.ts';
import { API_VERSION, CLUSTER_LABEL, etcdClusters, etcdDefrags, remedyDefragName } from '../../../api/names.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { isDone, isFinished, mebibytes } from '../../../domain/defragmentation.ts';
import { controllerOf, identity, ownedBy } from '../../../domain/ownership.ts';
import {
  COMPACTION_SETTLES_MS,
  DISARMED_WITHIN_MS,
  DISRUPTION_RECHECK_MS,
  REMEDY_FULL_MS,
  REMEDY_KEPT_SECONDS,
  REMEDY_PAUSE_MS,
  REMEDY_RETRY_MS,
  UNHEALTHY_RESYNC_MS,
} from '../../../domain/timing.ts';
import { iso } from '../../../lib/time.ts';
import type { Step } from '../../../runtime/plan.ts';
import type { ClusterCall } from '../calls.ts';
import { etcdStep } from '../etcd-calls.ts';
import type { Contributed, Observed } from '../observed.ts';
import { healthyVoters, leaderOf } from '../quorum.ts';
import {
  fits,
  fullMembers,
  fullOfKeys,
  isUnderRemedy,
  keptRevisions,
  largestInUse,
  noRoomMessage,
  remedyOf,
  reportingVoters,
  wantsRemedy,
} from '../remedy.ts';

export function remedyNoSpace(o: Observed): Contributed {
  const full = fullMembers(o);
  const recorded = remedyOf(o);
  if (full === undefined || leaderOf(o) === undefined || healthyVoters(o).length === 0) return undefined;
  const current = isUnderRemedy(o) ? recorded : undefined;
  const voters = reportingVoters(o);
  // A member that lags, or was just restarted, may not list an alarm that all others have.
  if (current && full.length === 0) return voters && remedied(o, current);
  if (!wantsRemedy(o) || full.length === 0) return undefined;
  if (!current && o.members.every(fits)) return undefined; // the alarm alone is left
  if (!voters) return { message: 'NOSPACE: waiting until every voter responds', requeueAfterMs: UNHEALTHY_RESYNC_MS };
  if (!current) return started(o, recorded, largestInUse(voters));
  return current.defrag === undefined ? compacting(o, current, largestInUse(voters)) : defragmenting(o, current);
}

/** Each remedy costs the members a defragmentation: clients that fill the database again at once get no endless row of them. */
function pauseMs(o: Observed, { finishedAt, result }: RemedyStatus): number {
  if (finishedAt === undefined || (result === 'NoRoom' && !fullOfKeys(o))) return 0;
  const pause = result === 'Remedied' ? REMEDY_PAUSE_MS : result === 'NoRoom' ? REMEDY_FULL_MS : REMEDY_RETRY_MS;
  const passed = o.now - Date.parse(finishedAt);
  return passed < 0 ? 0 : Math.max(0, pause - passed);
}

function started(o: Observed, before: RemedyStatus | undefined, inUseBytes: number): Contributed {
  const waitMs = before ? pauseMs(o, before) : 0;
  if (waitMs > 0) return { message: 'NOSPACE: the next attempt comes later', requeueAfterMs: waitMs };
  const revision = (o.revision ?? 0) - keptRevisions(o);
  const startedAt = iso(o.now);
  const remedy: RemedyStatus = { startedAt, inUseBytes, measuredAt: startedAt, ...(revision > 0 && { revision }) };
  const what = revision > 0 ? `compacting the history up to revision ${revision}` : 'there is no history to compact';
  const message = `NOSPACE: ${what}`;
  return {
    message,
    latch: { remedy },
    sequences: compaction(o, remedy),
    event: { type: 'Normal', reason: 'RemedyingNoSpace', note: message },
    requeueAfterMs: DISRUPTION_RECHECK_MS,
  };
}

/** etcd refuses a revision that it has compacted already: asking again costs nothing. */
const compaction = (o: Observed, { revision }: RemedyStatus): readonly (readonly Step<ClusterCall>[])[] =>
  revision === undefined ? [] : [[etcdStep(o, { name: 'compact', revision }, `revision ${revision}`)]];

/** etcd compacts in the background, and reports no end: the space in use becomes smaller until then. */
function compacting(o: Observed, current: RemedyStatus, inUseBytes: number): Contributed {
  const message = 'NOSPACE: etcd removes the compacted history';
  const again = { message, sequences: compaction(o, current), requeueAfterMs: DISRUPTION_RECHECK_MS };
  if (inUseBytes < (current.inUseBytes ?? 0))
    return { ...again, latch: { remedy: { ...current, inUseBytes, measuredAt: iso(o.now) } } };
  const isRefused = o.memory.failures.some(({ call }) => call === 'compact');
  const sinceMs = Math.min(o.remedyObservedMs ?? 0, o.now - Date.parse(current.measuredAt ?? ''));
  const isSettled = sinceMs >= COMPACTION_SETTLES_MS;
  if (isRefused || !isSettled) return again;
  const defrag = remedyDefragName(identity(o.cluster).name, Date.parse(current.startedAt ?? ''));
  return asked(o, { ...current, defrag }, defrag);
}

/** Every member, whatever it reports to have free: after a compaction etcd counts the pages as used until its next write, and there is none. */
const RULE = { all: true } as const;

/** Created again under its name if it is missing: the operator was killed, or a user has deleted it. */
function asked(o: Observed, remedy: RemedyStatus, name: string): Contributed {
  const { namespace, name: cluster } = identity(o.cluster);
  const object: EtcdDefrag = {
    apiVersion: API_VERSION,
    kind: etcdDefrags.kind,
    metadata: {
      name,
      namespace,
      labels: { [CLUSTER_LABEL]: cluster },
      ownerReferences: ownedBy(etcdClusters, o.cluster),
    },
    spec: { clusterRef: { name: cluster }, rule: RULE, ttlSecondsAfterFinished: REMEDY_KEPT_SECONDS },
  };
  const message = `NOSPACE: creating EtcdDefrag ${name}`;
  return { message, latch: { remedy }, sequences: [[{ do: 'create', object }]] };
}

function defragmenting(o: Observed, current: RemedyStatus): Contributed {
  const { remedyDefrag: defrag } = o;
  const name = current.defrag ?? '';
  if (!defrag) return asked(o, current, name);
  if (controllerOf(defrag)?.uid !== o.cluster.metadata.uid)
    return ended(o, current, 'Failed', `EtcdDefrag ${name} belongs to another owner: delete it`);
  const requeueAfterMs = UNHEALTHY_RESYNC_MS;
  const { members = [] } = defrag.status ?? {};
  // Exact from here on; the EtcdDefrag itself waits another minute for the alarm to be disarmed.
  const m = members.length > 0 && members.every(isDone) ? fullOfKeys(o) : undefined;
  if (m) return ended(o, current, 'NoRoom', noRoomMessage(o, m));
  if (!isFinished(defrag)) return { message: `NOSPACE: waiting for EtcdDefrag ${name}`, requeueAfterMs };
  if (o.now - Date.parse(defrag.status?.completedAt ?? '') < DISARMED_WITHIN_MS)
    return { message: 'NOSPACE: waiting until the alarm is disarmed', requeueAfterMs };
  const why = findCondition(defrag.status?.conditions, 'DefragChecked')?.message ?? 'see its status';
  return ended(o, current, 'Failed', `EtcdDefrag ${name} has ended (${why}), and a database has no room yet`);
}

function remedied(o: Observed, current: RemedyStatus): Contributed {
  const members = o.remedyDefrag?.status?.members ?? [];
  const freed = members.reduce((sum, { reclaimedBytes = 0 }) => sum + reclaimedBytes, 0);
  const seconds = Math.round((o.now - Date.parse(current.startedAt ?? '')) / 1_000);
  const parts = [
    current.revision === undefined ? [] : [`compacted up to revision ${current.revision}`],
    members.length === 0 ? [] : [`${mebibytes(freed)} freed in ${members.length} members`],
    [`etcd accepts writes again after ${seconds} s`],
  ];
  return ended(o, current, 'Remedied', parts.flat().join(', '));
}

function ended(
  o: Observed,
  current: RemedyStatus,
  result: 'Remedied' | 'NoRoom' | 'Failed',
  text: string,
): Contributed {
  const message = `NOSPACE: ${text}`;
  const isGood = result === 'Remedied';
  return {
    message,
    latch: { remedy: { ...current, result, message: text, finishedAt: iso(o.now) } },
    event: {
      type: isGood ? 'Normal' : 'Warning',
      reason: isGood ? 'NoSpaceRemedied' : 'NoSpaceNotRemedied',
      note: message,
    },
  };
}
