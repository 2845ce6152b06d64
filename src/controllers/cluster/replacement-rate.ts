/**
 * How many volumes are discarded on judged evidence, over all clusters: a fault that all members share, such as a node image that
 * breaks etcd, looks like lost data in each of them, and must not take the data of all clusters within minutes.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdClusterStatus, MAX_RECENT } from '../../api/etcd-cluster-status.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import { REPLACEMENT_RATE_MS } from '../../domain/timing.ts';
import { iso } from '../../lib/time.ts';
import { evidence, isFormed, isInMemory, type MemberView, nameOf, type Observed } from './observed.ts';
import { isCorrupt } from './quorum.ts';

export type Replacement = NonNullable<NonNullable<EtcdClusterStatus['repair']>['recent']>[number];

/** All clusters together: how many were replaced in the last hour, how many may be, and when the next one may be. */
export interface ReplacementRate {
  readonly used: number;
  readonly limit: number;
  readonly nextAt: number;
}

/** In a large fleet some members are always lost: this share of clusters may lose one each hour. */
const SHARE = 0.02;
/** 0 is a full stop. */
export const limitFor = (perHour: number, clusters: number): number =>
  perHour === 0 ? 0 : Math.max(perHour, Math.floor(clusters * SHARE));

/** Replacements of the last hour. A time in the future counts: the clock was set back. */
export const recentReplacements = ({ status }: Pick<EtcdCluster, 'status'>, now: number): readonly Replacement[] =>
  (status?.repair?.recent ?? []).filter(({ at }) => now - Date.parse(at) < REPLACEMENT_RATE_MS);

/** What the operator concluded from exits of etcd, alarms or a NotReady node: with a volume that may be intact. */
const JUDGED: readonly string[] = [
  EVIDENCE.dataInvalid,
  EVIDENCE.volumeFull,
  EVIDENCE.crashLooping,
  EVIDENCE.removed,
  EVIDENCE.nodeLost,
];

/**
 * Not: data in memory, a PVC that a user deletes, a node that was deleted or is out of service (its volumes are lost with it), a
 * seed whose cluster never formed.
 */
export function discardsOnJudgement(o: Observed, m: MemberView): boolean {
  const reason = evidence(m)?.reason ?? '';
  if (!isFormed(o) || isInMemory(m) || m.pvc === 'terminating') return false;
  if (reason === EVIDENCE.nodeLost && m.nodeGone === true) return false;
  return isCorrupt(o, m) || JUDGED.includes(reason);
}

/** The record of this replacement and the other ones of the last hour. A second attempt for a member is no further replacement. */
export function recordedReplacements(o: Observed, m: MemberView): { readonly recent?: Replacement[] } {
  const others = recentReplacements(o.cluster, o.now).filter(({ member }) => member !== nameOf(m));
  const recent = [...others, ...(discardsOnJudgement(o, m) ? [{ member: nameOf(m), at: iso(o.now) }] : [])];
  return recent.length === 0 ? {} : { recent: recent.slice(-MAX_RECENT) };
}

/** Why this member is not replaced now although it has failed; `undefined` when it may be. */
export function rateLimitedBy(o: Observed, m: MemberView): string | undefined {
  const { replacementRate: rate } = o;
  const isRecorded = recentReplacements(o.cluster, o.now).some(({ member }) => member === nameOf(m));
  if (!rate || rate.used < rate.limit || isRecorded || !discardsOnJudgement(o, m)) return undefined;
  const next = rate.limit === 0 ? '' : ` The next one is possible at ${iso(rate.nextAt)}.`;
  return `the operator has replaced ${rate.used} members of all clusters in the last hour, and the limit is ${rate.limit}: failures in many clusters at once mostly have one cause, and the volumes may be intact.${next} Find the cause; to replace this member anyway, delete EtcdMember ${nameOf(m)}`;
}
