/** The observed state of one EtcdDefrag. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag, EtcdDefragStatus, MemberOutcome } from '../../api/etcd-defrag.ts';
import { findCondition } from '../../domain/conditions.ts';
import { CRDS_CURRENT } from '../../domain/crds-current.ts';
import { isPaused } from '../../domain/paused.ts';
import { isSuspended } from '../../domain/suspend.ts';

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly object: EtcdDefrag;
  /** Missing only if the API server returned 404. */
  readonly cluster: EtcdCluster | undefined;
  /** The EtcdDefrag of the same cluster whose turn it is, if it is not this one. */
  readonly ahead?: string;
}

export const statusBefore = ({ object }: Observed): EtcdDefragStatus => object.status ?? {};
/** Written by the cluster controller, from the start of the run on. */
export const membersOf = (o: Observed): readonly MemberOutcome[] => statusBefore(o).members ?? [];
export const withOutcome = (o: Observed, wanted: string): readonly MemberOutcome[] =>
  membersOf(o).filter(({ outcome }) => outcome === wanted);
export const clusterName = ({ object }: Observed): string => object.spec.clusterRef.name ?? '';

/** Why the cluster controller does not defragment a member now; `undefined` when nothing indicates that. */
export function waitingFor(o: Observed): string | undefined {
  const { cluster } = o;
  if (!cluster) return undefined;
  if (isSuspended(cluster)) return `EtcdCluster ${clusterName(o)} is suspended`;
  if (isPaused(cluster)) return `EtcdCluster ${clusterName(o)} is paused (replicas 0)`;
  const crds = findCondition(cluster.status?.conditions, CRDS_CURRENT);
  if (crds?.status === 'False' && crds.message.includes('status.defragmentation')) return crds.message;
  const available = findCondition(cluster.status?.conditions, 'Available');
  const { status = 'Unknown', reason = '', message = 'it has no status yet' } = available ?? {};
  if (status !== 'True' || reason !== 'QuorumHealthy')
    return `EtcdCluster ${clusterName(o)} is not healthy: ${message}`;
  return statusBefore(o).waitingFor;
}

/** The cluster still has the alarm that makes all members reject writes. */
export const isFull = ({ cluster }: Observed): boolean =>
  cluster?.status?.members?.some(({ alarms }) => alarms?.includes('NOSPACE')) === true;
