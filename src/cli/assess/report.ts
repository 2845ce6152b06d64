/** The report about one cluster: what `status -o json` prints, and what the screen is drawn from. */
import type { CertificatesView } from '../../access/evaluate/view.ts';
import type { Condition } from '../../api/conditions.ts';
import { targetOf } from '../../api/defaults.ts';
import type { Event } from '../../gen/kube.ts';
import { present } from '../../lib/present.ts';
import { sentenceOf } from '../../pki/findings.ts';
import { latestSnapshots, recoveryPoint, type ScheduleRow, type SnapshotRow, scheduleRow, time } from './backups.ts';
import { type DefragRow, latestDefrags } from './defrags.ts';
import type { ClusterFacts, Unread } from './facts.ts';
import { type Judgement, judge } from './health.ts';
import { type MemberRow, memberRows } from './members.ts';
import { leaderOf, type Quorum, quorum } from './quorum.ts';
import { isBehind, type RolloutRow, rolloutOf } from './rollout.ts';

export interface CertificateRow {
  readonly role: string;
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly notAfter?: number;
  readonly renewAt?: number;
  readonly problems: readonly string[];
}

export interface EventRow {
  readonly at: number;
  readonly type: string;
  readonly reason: string;
  readonly about: string;
  readonly note: string;
  readonly count: number;
}

export interface ClusterReport extends Judgement {
  readonly namespace: string;
  readonly name: string;
  readonly clusterID?: string;
  readonly version: { readonly wanted: string; readonly running?: string };
  readonly replicas: number;
  readonly quorum?: Quorum;
  /** The EtcdMember. */
  readonly leader?: string;
  readonly members: readonly MemberRow[];
  readonly operator: {
    readonly suspended: boolean;
    /** Members that match the spec. */
    readonly updated?: number;
    /** The spec was edited after the operator last reported. */
    readonly behind: boolean;
    readonly conditions: readonly Condition[];
  };
  readonly rollout?: RolloutRow;
  /** Those that wait or run, and the last that have finished. */
  readonly defragmentations: readonly DefragRow[];
  readonly certificates: readonly CertificateRow[];
  /** When the newest stored snapshot was taken: later writes would be lost with the cluster. In milliseconds since 1970. */
  readonly recoveryPoint?: number;
  readonly schedules: readonly ScheduleRow[];
  readonly snapshots: readonly SnapshotRow[];
  readonly pdb?: {
    readonly name: string;
    readonly disruptionsAllowed: number;
    readonly currentHealthy: number;
    readonly desiredHealthy: number;
  };
  readonly events: readonly EventRow[];
  /** What could not be read. */
  readonly unread: readonly Unread[];
}

const MAX_EVENTS = 6;

export function reportOn(facts: ClusterFacts): ClusterReport {
  const { cluster, pdb } = facts;
  const { metadata, spec, status } = cluster;
  const members = memberRows(facts);
  const leader = leaderOf(facts);
  const allowed = pdb?.status;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    ...judge(facts),
    ...present({
      clusterID: status?.clusterID,
      quorum: quorum(facts),
      leader: members.find(({ id }) => leader !== undefined && id === leader)?.name,
      recoveryPoint: recoveryPoint(facts),
      rollout: rolloutOf(cluster),
    }),
    version: { wanted: spec.version, ...present({ running: status?.version }) },
    replicas: targetOf(spec, status).replicas,
    members,
    operator: {
      suspended: spec.suspend === true,
      ...present({ updated: status?.updatedMembers }),
      behind: isBehind(cluster),
      conditions: status?.conditions ?? [],
    },
    defragmentations: latestDefrags(facts),
    certificates: certificateRows(facts.certificates),
    schedules: facts.schedules.map(scheduleRow),
    snapshots: latestSnapshots(facts),
    ...(allowed && {
      pdb: {
        name: pdb.metadata.name ?? '',
        disruptionsAllowed: allowed.disruptionsAllowed ?? 0,
        currentHealthy: allowed.currentHealthy ?? 0,
        desiredHealthy: allowed.desiredHealthy ?? 0,
      },
    }),
    events: eventRows(facts.events).slice(0, MAX_EVENTS),
    unread: facts.unread,
  };
}

export const certificateRows = (view: CertificatesView | undefined): readonly CertificateRow[] =>
  (view?.certificates ?? []).map(({ need, notAfter, renewAt, findings }) => ({
    role: need.role,
    secret: need.secret,
    ...present({ notAfter, renewAt }),
    problems: findings.map(sentenceOf),
  }));

/** The newest first. */
export const eventRows = (events: readonly Event[]): readonly EventRow[] =>
  events
    .map((event): EventRow => {
      const { series, regarding, metadata } = event;
      const at = [series?.lastObservedTime, event.deprecatedLastTimestamp, event.eventTime, metadata.creationTimestamp];
      return {
        at: at.map((text) => time(text ?? undefined)).find((each) => each !== undefined) ?? 0,
        type: event.type ?? 'Normal',
        reason: event.reason ?? '',
        about: `${regarding?.kind ?? ''} ${regarding?.name ?? ''}`.trim(),
        note: event.note ?? '',
        count: series?.count ?? event.deprecatedCount ?? 1,
      };
    })
    .toSorted((a, b) => b.at - a.at);
