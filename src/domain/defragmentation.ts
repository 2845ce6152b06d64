/** What defragmentations of a cluster consist of: whose turn it is, which members are worth it, and how long one may take. */
import type { DefragRule, EtcdDefrag, MemberOutcome } from '../api/etcd-defrag.ts';
import { quantityBytes } from '../lib/quantity.ts';
import { isBeingDeleted } from './ownership.ts';
import { MIN_DEFRAGMENTATION_MS } from './timing.ts';

/** A finished EtcdDefrag never runs again. */
export const isFinished = ({ status }: EtcdDefrag): boolean =>
  status?.phase === 'Complete' || status?.phase === 'Failed';

/**
 * The EtcdDefrags of one cluster that wait or run, the one whose turn it is first. Creation times have seconds: by them and names
 * alone, one that is created later would overtake one that runs.
 */
export const queueOf = (defrags: readonly EtcdDefrag[]): readonly EtcdDefrag[] =>
  defrags
    .filter((defrag) => !isFinished(defrag) && !isBeingDeleted(defrag))
    .toSorted(
      (a, b) =>
        progress(b) - progress(a) || compare(created(a), created(b)) || compare(a.metadata.name, b.metadata.name),
    );

/** Its members are listed; or its turn has come, and its deadline counts; or neither. */
const progress = (defrag: EtcdDefrag): number =>
  hasStarted(defrag) ? 2 : defrag.status?.admittedAt === undefined ? 0 : 1;
const created = ({ metadata }: EtcdDefrag): string => metadata.creationTimestamp ?? '';
const compare = (a = '', b = ''): number => (a < b ? -1 : a > b ? 1 : 0);

export const hasStarted = ({ status }: EtcdDefrag): boolean => (status?.members?.length ?? 0) > 0;
/** Its members are defragmented one after the other, and nothing holds that up. */
export const isUnderWay = (defrag: EtcdDefrag): boolean =>
  hasStarted(defrag) && !isFinished(defrag) && defrag.status?.waitingFor === undefined;

/** How many other clusters are being defragmented, and how many may be. */
export interface DefragFleet {
  readonly running: number;
  readonly limit: number;
}

const OTHER_CLUSTERS = 'other clusters are being defragmented';
/** Why a run does not start now; `undefined` when it may. */
export const fleetBusy = ({ running, limit }: DefragFleet): string | undefined =>
  running < limit ? undefined : `${OTHER_CLUSTERS}, as many as the operator allows at once (${limit})`;
/** It waits for its place, and its deadline with it: in a large fleet that takes hours, and nothing is wrong. */
export const waitsForFleet = ({ status }: EtcdDefrag): boolean =>
  status?.waitingFor?.startsWith(OTHER_CLUSTERS) === true;

/** Nothing more happens to this member. Its size afterwards is read after etcd has reported success. */
export const isDone = ({ outcome, finishedAt }: MemberOutcome): boolean =>
  outcome !== undefined && outcome !== 'Pending' && finishedAt !== undefined;

export interface DatabaseSize {
  readonly bytes: number;
  readonly bytesInUse: number;
  readonly quotaBytes: number;
}

export const FREE_SPACE_ABOVE = '200Mi';
export const MIN_RECLAIM = '32Mi';

/** Why the rule leaves this member out; `undefined` when it is to be defragmented. */
export function belowThreshold(rule: DefragRule | undefined, size: DatabaseSize): string | undefined {
  if (rule?.all === true) return undefined;
  const { freeSpaceAbove = FREE_SPACE_ABOVE, quotaUsageAbove, minReclaim = MIN_RECLAIM } = rule ?? {};
  const free = size.bytes - size.bytesInUse;
  if (free > quantityBytes(freeSpaceAbove)) return undefined;
  const share = quotaUsageAbove === undefined ? undefined : Number.parseInt(quotaUsageAbove, 10) / 100;
  if (share !== undefined && size.bytes > share * size.quotaBytes && free >= quantityBytes(minReclaim))
    return undefined;
  return `it would free ${mebibytes(free)} of ${mebibytes(size.bytes)}`;
}

export const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

/** In bytes per millisecond: slower than any disk that etcd runs on; measured: 141 to 152 MB/s. */
const SLOWEST = 10_000;

/** How long etcd may take to rewrite a database. It cannot be interrupted, other than by a restart. */
export const timeLimitMs = (bytes: number): number => MIN_DEFRAGMENTATION_MS + bytes / SLOWEST;

/** etcd rejects writes again as soon as its quota is reached: an alarm is disarmed only with some room left. */
const MAX_QUOTA_USED = 0.9;
export const hasRoom = ({ bytes, quotaBytes }: Omit<DatabaseSize, 'bytesInUse'>): boolean =>
  bytes < MAX_QUOTA_USED * quotaBytes;
