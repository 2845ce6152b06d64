/** The facts that a decision about one EtcdSnapshotSchedule is made from, and the questions that rules ask of them. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule, EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import { slotOf } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import { type Holding, identity, isBeingDeleted } from '../../domain/ownership.ts';
import type { Job, Pod } from '../../gen/kube.ts';

/** A Job of this schedule. */
export interface OwnedJob {
  readonly job: Job;
  /** The newest last. */
  readonly pods: readonly Pod[];
}

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Who refused a step of the last pass, and why, as a sentence. */
  readonly refusal: string | undefined;
  readonly object: EtcdSnapshotSchedule;
  readonly cluster: EtcdCluster | undefined;
  /** Snapshots that this schedule had made, by name and so by the minute that they are for; those being deleted included. */
  readonly runs: readonly EtcdSnapshot[];
  /** Whoever has the name of the snapshot that is due. */
  readonly due: Holding<EtcdSnapshot>;
  /** Its Jobs, by name. */
  readonly jobs: readonly OwnedJob[];
  /** The image of this operator; empty when it was not told. */
  readonly operatorImage: string;
  readonly images: ImagePolicy;
}

export const statusBefore = (o: Observed): EtcdSnapshotScheduleStatus => o.object.status ?? {};
/** A snapshot has ended when it is stored, or never will be. */
export const isStored = ({ status }: EtcdSnapshot): boolean =>
  status?.phase === 'Complete' && status.artifact !== undefined;
export const hasFailed = ({ status }: EtcdSnapshot): boolean =>
  status?.phase === 'Failed' || (status?.phase === 'Complete' && status.artifact === undefined);
export const isActive = (run: EtcdSnapshot): boolean => !isStored(run) && !hasFailed(run) && !isBeingDeleted(run);

/** The minute that a snapshot of this schedule is for. */
export const dueTimeIn = (o: Observed, snapshot: string): number =>
  slotOf(identity(o.object).name, snapshot) ?? Number.NEGATIVE_INFINITY;

/** The newest of its runs for which something holds. Those from the future were made by a clock that was wrong. */
export const newestRun = (o: Observed, holds: (run: EtcdSnapshot) => boolean): EtcdSnapshot | undefined =>
  o.runs.findLast((run) => holds(run) && dueTimeIn(o, identity(run).name) <= o.now);
