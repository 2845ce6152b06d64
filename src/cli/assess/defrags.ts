/** EtcdDefrags of a cluster: new ones, and how far others are. */
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import type { DefragRule, EtcdDefrag } from '../../api/etcd-defrag.ts';
import { API_VERSION } from '../../api/names.ts';
import { isDone, isFinished, mebibytes, queueOf } from '../../domain/defragmentation.ts';
import { present } from '../../lib/present.ts';
import { time } from './backups.ts';
import type { ClusterFacts } from './facts.ts';
import type { Progress } from './progress.ts';

export interface DefragRow {
  readonly name: string;
  readonly phase: string;
  /** Members that nothing more happens to, and all. */
  readonly done: number;
  readonly members: number;
  readonly freedBytes: number;
  /** The member whose etcd rewrites its database now. */
  readonly now?: string;
  readonly waitingFor?: string;
  /** Milliseconds since 1970. */
  readonly finishedAt?: number;
}

type Marker = EtcdClusterStatus['defragmentation'];

export function defragRow({ metadata, status = {} }: EtcdDefrag, marker?: Marker): DefragRow {
  const members = status.members ?? [];
  return {
    name: metadata.name ?? '',
    phase: status.phase ?? 'Pending',
    done: members.filter(isDone).length,
    members: members.length,
    freedBytes: members.reduce((sum, { reclaimedBytes = 0 }) => sum + reclaimedBytes, 0),
    ...present({
      now: marker?.uid === metadata.uid ? marker?.member : undefined,
      waitingFor: status.waitingFor,
      finishedAt: time(status.completedAt),
    }),
  };
}

const HOUR_MS = 3_600_000;
/** On the screen of a cluster. */
const MAX_FINISHED = 2;

/** In the order in which they run, and then those that have just finished. */
export function latestDefrags({ defrags, cluster, now }: ClusterFacts): readonly DefragRow[] {
  const finished = defrags
    .filter(isFinished)
    .map((defrag) => defragRow(defrag))
    .filter(({ finishedAt = 0 }) => now - finishedAt < HOUR_MS)
    .toSorted((a, b) => (b.finishedAt ?? 0) - (a.finishedAt ?? 0));
  const open = queueOf(defrags).map((defrag) => defragRow(defrag, cluster.status?.defragmentation));
  return [...open, ...finished.slice(0, MAX_FINISHED)];
}

export interface RuleFlags {
  readonly freeSpaceAbove?: string;
  readonly quotaUsageAbove?: string;
  readonly minReclaim?: string;
}

/** Without a flag, all members: a user who types the command wants it done. */
export function ruleOf({ freeSpaceAbove, quotaUsageAbove, minReclaim }: RuleFlags): DefragRule {
  const named = present({ freeSpaceAbove, quotaUsageAbove, minReclaim });
  return Object.keys(named).length === 0 ? { all: true } : named;
}

/** Finished ones would pile up. */
const KEPT_SECONDS = 24 * 3_600;

export const newDefrag = (namespace: string, name: string, cluster: string, rule: DefragRule): EtcdDefrag => ({
  apiVersion: API_VERSION,
  kind: 'EtcdDefrag',
  metadata: { name, namespace },
  spec: { clusterRef: { name: cluster }, rule, ttlSecondsAfterFinished: KEPT_SECONDS },
});

const sizes = ({ dbSizeBefore, dbSizeAfter }: { readonly dbSizeBefore?: number; readonly dbSizeAfter?: number }) =>
  dbSizeBefore === undefined || dbSizeAfter === undefined
    ? ''
    : ` (${mebibytes(dbSizeBefore)} before, ${mebibytes(dbSizeAfter)} now)`;

/** What came of each member, in the order in which they were done. */
export const outcomeLines = ({ status }: EtcdDefrag): readonly string[] =>
  (status?.members ?? [])
    .filter(isDone)
    .toSorted((a, b) => ((a.finishedAt ?? '') < (b.finishedAt ?? '') ? -1 : 1))
    .map((member) => {
      const { name, outcome = '', reason, message } = member;
      const why = reason === undefined ? '' : `: ${[reason, message].filter(Boolean).join(': ')}`;
      return `${name}: ${outcome}${sizes(member)}${why}`;
    });

export function defragProgress(name: string, defrag: EtcdDefrag | undefined): Progress {
  if (!defrag) return { line: `${name}: it was deleted`, ended: 'bad' };
  const { phase, done, members, waitingFor } = defragRow(defrag);
  const checked = defrag.status?.conditions?.find(({ type }) => type === 'DefragChecked');
  const why = checked?.message ?? '';
  if (phase === 'Complete') return { line: `${name}: ${why || 'complete'}`, ended: 'good' };
  if (phase === 'Failed') return { line: `${name}: failed (${checked?.reason ?? ''}): ${why}`, ended: 'bad' };
  const count = members === 0 ? '' : ` ${done} of ${members} members done`;
  const waits = waitingFor ?? (phase === 'Pending' ? why : undefined);
  return { line: `${name}: ${phase}${count}${waits ? `; ${waits}` : ''}` };
}
