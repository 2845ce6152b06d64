/** The observed state of one EtcdSnapshot, and the predicates that rules share. */

import type { Sources } from '../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { lookupJobName, MANAGED_BY_LABEL, snapshotJobName } from '../../api/names.ts';
import { type Holding, identity } from '../../domain/ownership.ts';
import type { REFERENCE_NOT_PERMITTED } from '../../domain/tenancy.ts';
import type { Job, Pod } from '../../gen/kube.ts';

/** What a member's etcd reported in this reconcile. */
export type MemberReport =
  | { readonly is: 'unreachable'; readonly message: string }
  | {
      readonly is: 'answers';
      readonly id: string;
      /** The leader's id, as this member reports it. */
      readonly leader: string | undefined;
      readonly isLearner: boolean;
      /** The index of the last applied log entry. */
      readonly applied: number;
      readonly databaseBytes: number;
      /** The alarm CORRUPT is active: the data differs from that of other members. */
      readonly isCorrupt: boolean;
    };

export interface MemberView {
  readonly name: string;
  /** The DNS name, which is in its certificate. */
  readonly host: string;
  /** The member's own URL, never the client Service: that could lead to any other member. */
  readonly endpoint: string;
  readonly report: MemberReport;
  /** It answers no stream until it is defragmented. */
  readonly isBeingDefragmented?: boolean;
}

/** A missing or incomplete object that the spec refers to: the Pod would stay in ContainerCreating. */
export interface MissingSecret {
  readonly reason: 'SecretMissing' | 'SecretUnreadable' | 'VolumeClaimMissing' | typeof REFERENCE_NOT_PERMITTED;
  readonly message: string;
}

/** What is known about the copy of a stored snapshot. */
export interface CopyView {
  /** Of the attempt that is due or runs. */
  readonly job: Holding<Job>;
  /** The newest last. */
  readonly pods: readonly Pod[];
  /** What a location names and the administrator does not permit. */
  readonly notPermitted?: string;
}

export interface Observed {
  /** Only while the copy is to be made. */
  readonly copying?: CopyView;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Why the API server refused a step of the previous reconcile. */
  readonly refusal: string | undefined;
  readonly object: EtcdSnapshot;
  /** The operator image; empty when it is not configured. */
  readonly operatorImage: string;
  readonly job: Holding<Job>;
  /** The Job of an earlier operator is complete. Its result is in the log of its Pod: `job` is the one that looks it up in the store. */
  readonly earlier?: Job;
  /** The foreign Job of this name is being deleted. */
  readonly isLeaving: boolean;
  /** The Pods of the Job, the newest last. */
  readonly pods: readonly Pod[];
  /** Missing only if the API server returned 404. */
  readonly cluster: EtcdCluster | undefined;
  /** From here on: observed only before a Job is created. */
  readonly lacks: readonly MissingSecret[];
  readonly sources: Sources;
  readonly members: readonly MemberView[];
  /** Since when no member could serve a snapshot. */
  readonly unreachableSince?: number;
}

/** The earlier operator labelled its Jobs with their cluster only, so that the caches have neither them nor their Pods. */
export const isOfEarlierOperator = ({ metadata }: Job): boolean => metadata.labels?.[MANAGED_BY_LABEL] === undefined;

/** The Job that this operator creates for the snapshot. */
export const jobNameOf = ({ object, earlier }: Observed): string => {
  const { name } = identity(object);
  return earlier ? lookupJobName(name) : snapshotJobName(name);
};

export const clusterNameOf = ({ spec }: EtcdSnapshot): string => spec.clusterRef.name ?? '';

/** A snapshot is taken once: a finished one never starts again. */
export const isOver = ({ status }: EtcdSnapshot): boolean => status?.phase === 'Complete' || status?.phase === 'Failed';

/** In log entries: a follower that is further behind would give outdated data. */
const MAX_LAG = 1_000;

/**
 * The follower closest to the leader, to spare the leader; the leader when no follower is close; without a leader, the voter with
 * the most entries: a cluster without quorum needs a snapshot more than any other. Never a learner or a corrupt member.
 */
export const memberToAsk = (members: readonly MemberView[]): MemberView | undefined => membersToAsk(members)[0];

/** The rest in the order in which they replace it when it fails. */
export function membersToAsk(members: readonly MemberView[]): readonly MemberView[] {
  const voters = members.flatMap((view) =>
    view.report.is === 'answers' && !view.report.isLearner && !view.report.isCorrupt ? [{ view, ...view.report }] : [],
  );
  const head = Math.max(...voters.map(({ applied }) => applied));
  const order = voters.toSorted((a, b) => b.applied - a.applied || (a.view.name < b.view.name ? -1 : 1));
  const leads = ({ id, leader }: (typeof voters)[number]): boolean => id === leader;
  const follows = (v: (typeof voters)[number]): boolean =>
    !leads(v) && v.leader !== undefined && head - v.applied <= MAX_LAG;
  const usable = [...order.filter(follows), ...order.filter(leads)];
  const all = (usable.length > 0 ? usable : order).map(({ view }) => view);
  return all.toSorted((a, b) => Number(a.isBeingDefragmented ?? false) - Number(b.isBeingDefragmented ?? false));
}
