/** The facts that a decision about one EtcdSnapshot is made from, and the questions that rules ask of them. */

import type { Sources } from '../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { Holding } from '../../domain/ownership.ts';
import type { Job, Pod } from '../../gen/kube.ts';

/** What a member's own etcd said in this pass. */
export type MemberReport =
  | { readonly is: 'silent'; readonly why: string }
  | {
      readonly is: 'answers';
      readonly id: string;
      /** Whom it takes for the leader. */
      readonly leader: string | undefined;
      readonly isLearner: boolean;
      /** How much of the log it has carried out. */
      readonly applied: number;
      readonly databaseBytes: number;
      /** etcd has found that its data differs from that of others. */
      readonly isCorrupt: boolean;
    };

export interface MemberView {
  readonly name: string;
  /** The name in DNS and in its certificate. */
  readonly host: string;
  /** By that name: never through the Service, which could lead to anybody. */
  readonly endpoint: string;
  readonly says: MemberReport;
}

/** Something that the spec names and that is not there, or not as it must be: the Pod would wait for it in silence. */
export interface MissingSecret {
  readonly reason: 'SecretMissing' | 'SecretUnreadable' | 'VolumeClaimMissing';
  readonly message: string;
}

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Who refused a step of the last pass, and why, as a sentence. */
  readonly refusal: string | undefined;
  readonly object: EtcdSnapshot;
  /** The image of this operator; empty when it was not told. */
  readonly operatorImage: string;
  readonly job: Holding<Job>;
  /** Whoever else has the name of the Job is on the way out. */
  readonly isLeaving: boolean;
  /** Of the Job, the newest last. */
  readonly pods: readonly Pod[];
  /** The server was asked before it counts as missing. */
  readonly cluster: EtcdCluster | undefined;
  /** What follows is looked at only when a Job may be made. */
  readonly lacks: readonly MissingSecret[];
  readonly sources: Sources;
  readonly members: readonly MemberView[];
  /** Since when no member could be found to take it from. */
  readonly silentSince?: number;
}

export const clusterNameOf = ({ spec }: EtcdSnapshot): string => spec.clusterRef.name ?? '';

/** A snapshot is taken once: nothing that has ended begins again. */
export const isOver = ({ status }: EtcdSnapshot): boolean => status?.phase === 'Complete' || status?.phase === 'Failed';

/** In entries of the log: a follower that is further behind would give yesterday's data. */
const MAX_LAG = 1_000;

/**
 * The follower that is closest to the leader, to spare the leader; the leader when none is close; without a leader, whoever has
 * the most: a cluster that has lost its quorum is worth a snapshot more than any other. Never a learner, nor corrupt data.
 */
export function memberToAsk(members: readonly MemberView[]): MemberView | undefined {
  const voters = members.flatMap((view) =>
    view.says.is === 'answers' && !view.says.isLearner && !view.says.isCorrupt ? [{ view, ...view.says }] : [],
  );
  const head = Math.max(...voters.map(({ applied }) => applied));
  const order = voters.toSorted((a, b) => b.applied - a.applied || (a.view.name < b.view.name ? -1 : 1));
  const leads = ({ id, leader }: (typeof voters)[number]): boolean => id === leader;
  const follows = (v: (typeof voters)[number]): boolean =>
    !leads(v) && v.leader !== undefined && head - v.applied <= MAX_LAG;
  return (order.find(follows) ?? order.find(leads) ?? order[0])?.view;
}
