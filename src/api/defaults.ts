/** What a spec means: the accepted target, with every default filled in. */
import { parseQuantity } from '../lib/quantity.ts';
import { DEFAULT_REPLICAS, type EtcdClusterSpec } from './etcd-cluster.ts';
import type { EtcdClusterStatus, Target } from './etcd-cluster-status.ts';
import type { EtcdOptions } from './options.ts';
import { DEFAULT_SIZE } from './storage.ts';

/** The set of defaults that new clusters get. Another set gets another name: a running cluster keeps what it was made with. */
export const DEFAULTS = '1';

const MI = 1024n * 1024n;
const GI = 1024n * MI;
/** For the write-ahead log and snapshots beside the database; measured on 3.6: up to 488 MiB, and 122 MiB when empty. */
const LOG_ROOM = 640n * MI;
const MAX_QUOTA = 8n * GI;

/**
 * The largest database that a volume has room for: 40 % of a small one, and never more than etcd suggests. A size beyond what is
 * read, such as 1e5000000, was stored before sizes had bounds: Kubernetes caps it at 8 EiB.
 */
export function quotaFor(size: string | number): number {
  const nano = parseQuantity(size);
  if (nano === undefined) return Number(MAX_QUOTA);
  const bytes = nano / 1_000_000_000n;
  const quota = bytes < GI ? (bytes * 2n) / 5n : bytes - LOG_ROOM;
  return Number(quota > MAX_QUOTA ? MAX_QUOTA : quota < 1n ? 1n : quota);
}

/** An hour of history: a client that was away for so long still finds its place. Clients that write a lot state less. */
const RETENTION = { periodic: '1h', revision: '10000' } as const;

function optionsFor(stated: EtcdOptions, size: string | number): EtcdOptions {
  const mode = stated.autoCompactionMode ?? 'periodic';
  return {
    ...stated,
    quotaBackendBytes: stated.quotaBackendBytes ?? quotaFor(size),
    autoCompactionMode: mode,
    autoCompactionRetention: stated.autoCompactionRetention ?? RETENTION[mode],
    corruptionCheck: {
      ...stated.corruptionCheck,
      initial: stated.corruptionCheck?.initial ?? true,
      compactHash: stated.corruptionCheck?.compactHash ?? true,
    },
  };
}

/**
 * A cluster that was begun and has no record of its defaults was made by the earlier operator, which had none: ours are
 * recorded together with the token.
 */
export const defaultsOf = (status: EtcdClusterStatus | undefined): string | undefined =>
  status?.defaults ?? (status?.clusterID === undefined && status?.clusterToken === undefined ? DEFAULTS : undefined);

/** The spec with every default filled in: what is latched as the target and copied to new members. */
export function targetOf(spec: EtcdClusterSpec, status?: EtcdClusterStatus): Target {
  const { replicas, storage, progressDeadlineSeconds: _, tls: _tls, auth: _auth, bootstrap: _b, ...rest } = spec;
  const { podDisruptionBudget: _budget, deletionPolicy: _policy, ...template } = rest;
  const size = storage?.size ?? DEFAULT_SIZE;
  return {
    ...template,
    replicas: replicas ?? DEFAULT_REPLICAS,
    storage: {
      size,
      medium: storage?.medium ?? '',
      ...(storage?.storageClassName !== undefined && { storageClassName: storage.storageClassName }),
    },
    ...(defaultsOf(status) !== undefined && {
      options: optionsFor(spec.options ?? {}, size),
      spread: spec.spread ?? 'Preferred',
    }),
  };
}
