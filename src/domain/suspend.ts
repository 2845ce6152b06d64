/** What `spec.suspend` of an EtcdCluster means to the controllers of the cluster and of its members. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { UNHEALTHY_RESYNC_MS } from './timing.ts';

/** A condition that exists only while it is True, and the reason of others. */
export const SUSPENDED = 'Suspended';

/** Not while it is being deleted: the finalizers of its members would hold up the deletion for ever. */
export const isSuspended = ({ metadata, spec }: EtcdCluster): boolean =>
  spec.suspend === true && metadata.deletionTimestamp === undefined;

/** The same cluster as if it were not suspended: for what would be done now. */
export const resumed = (cluster: EtcdCluster): EtcdCluster => ({
  ...cluster,
  spec: { ...cluster.spec, suspend: false },
});

/** What is reported meanwhile. `changes`: what would be done now. */
export const whileSuspended = (
  changes: readonly string[],
  { message, requeueAfterMs = 0 }: { readonly message: string; readonly requeueAfterMs?: number },
) =>
  changes.length === 0
    ? {
        message: `suspended: the operator changes nothing; ${message}`,
        requeueAfterMs: Math.max(requeueAfterMs, UNHEALTHY_RESYNC_MS),
      }
    : {
        message: `suspended: the operator changes nothing. Without spec.suspend it would do this now: ${changes.join('; ')}`,
        requeueAfterMs: UNHEALTHY_RESYNC_MS,
      };
