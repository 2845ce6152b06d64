/** The observed state of one EtcdSnapshotSchedule, and the predicates that rules share. */
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
  /** Why the API server refused a step of the previous reconcile. */
  readonly refusal: string | undefined;
  readonly object: EtcdSnapshotSchedule;
  readonly cluster: EtcdCluster | undefined;
  /** EtcdSnapshots of this schedule, sorted by name and so by scheduled minute; including those being deleted. */
  readonly runs: readonly EtcdSnapshot[];
  /** The object that has the name of the due snapshot. */
  readonly due: Holding<EtcdSnapshot>;
  /** Its Jobs, by name. */
  readonly jobs: readonly OwnedJob[];
  /** The operator image; empty when it is not configured. */
  readonly operatorImage: string;
  readonly images: ImagePolicy;
  /** A hash of the destination and of the versions of the objects that it refers to; absent: they could not be read. */
  readonly location?: string;
  /** What the destination names and the administrator does not permit: no Job uses it. */
  readonly notPermitted?: string;
  /** The same for copyTo. */
  readonly copiesNotPermitted?: string;
}

/** Of EtcdSnapshots, unless the spec states another number. */
export const SUCCESSFUL_HISTORY = 3;

export const statusBefore = (o: Observed): EtcdSnapshotScheduleStatus => o.object.status ?? {};
/** A snapshot has finished when it is stored, or has failed. */
export const isStored = ({ status }: EtcdSnapshot): boolean =>
  status?.phase === 'Complete' && status.artifact !== undefined;
export const hasFailed = ({ status }: EtcdSnapshot): boolean =>
  status?.phase === 'Failed' || (status?.phase === 'Complete' && status.artifact === undefined);
export const isActive = (run: EtcdSnapshot): boolean => !isStored(run) && !hasFailed(run) && !isBeingDeleted(run);

/** The scheduled minute of a snapshot of this schedule. */
export const dueTimeIn = (o: Observed, snapshot: string): number =>
  slotOf(identity(o.object).name, snapshot) ?? Number.NEGATIVE_INFINITY;

/** The newest matching run. Runs in the future were created by a clock that was ahead, and do not count. */
export const newestRun = (o: Observed, holds: (run: EtcdSnapshot) => boolean): EtcdSnapshot | undefined =>
  o.runs.findLast((run) => holds(run) && dueTimeIn(o, identity(run).name) <= o.now);
