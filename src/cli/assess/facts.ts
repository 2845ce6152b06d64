/** What the plugin has gathered about one cluster: plain data. What could not be read is a value, not an exception. */
import type { CertificatesView } from '../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import type { EtcdMemberEntry } from '../../domain/member-entry.ts';
import type { Report } from '../../domain/quorum.ts';
import type { Event, Pod, PodDisruptionBudget } from '../../gen/kube.ts';

/** What a member's own etcd responded. */
export interface MemberReport extends Report {
  readonly isLearner: boolean;
  readonly version: string;
  readonly term: number;
  readonly raftIndex: number;
  readonly revision: number;
  readonly databaseBytes: number;
  readonly inUseBytes: number;
}

/** `notAsked`: the plugin has no way to reach it, such as a missing permission; this is no statement about the member. */
export type Unanswered = { readonly is: 'failed' | 'notAsked'; readonly message: string };

export interface MemberFacts {
  readonly object: EtcdMember;
  readonly pod?: Pod;
  readonly zone?: string;
  readonly answer: { readonly is: 'answers'; readonly report: MemberReport } | Unanswered;
}

export type MemberList =
  | {
      readonly is: 'answers';
      readonly members: readonly EtcdMemberEntry[];
      /** By a quorum; otherwise as the member that responded last knew it. */
      readonly confirmed: boolean;
    }
  | Unanswered;

/** A kind that could not be read, with what the user lacks. */
export interface Unread {
  readonly what: string;
  readonly message: string;
}

export interface ClusterFacts {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly cluster: EtcdCluster;
  readonly members: readonly MemberFacts[];
  readonly list: MemberList;
  /** Absent without TLS, and when no Secret could be read. */
  readonly certificates?: CertificatesView;
  readonly schedules: readonly EtcdSnapshotSchedule[];
  readonly snapshots: readonly EtcdSnapshot[];
  readonly defrags: readonly EtcdDefrag[];
  readonly pdb?: PodDisruptionBudget;
  readonly events: readonly Event[];
  readonly unread: readonly Unread[];
}
