/** Defaults: from the spec to the target, in which every field is set. */
import { parseQuantity } from '../lib/quantity.ts';
import { DEFAULT_REPLICAS, type EtcdClusterSpec } from './etcd-cluster.ts';
import type { EtcdClusterStatus, Target } from './etcd-cluster-status.ts';
import type { EtcdMember } from './etcd-member.ts';
import type { EtcdOptions } from './options.ts';
import { DEFAULT_SIZE } from './storage.ts';
import { TEMPLATE_FIELDS } from './template.ts';

/** The set of defaults for new clusters. Another set gets another name: a running cluster keeps the defaults that it was created with. */
export const DEFAULTS = '1';

const MI = 1024n * 1024n;
const GI = 1024n * MI;
/** For the write-ahead log and snapshots beside the database; measured on 3.6: up to 488 MiB, and 122 MiB when empty. */
const LOG_ROOM = 640n * MI;
const MAX_QUOTA = 8n * GI;

/**
 * The largest database that fits on a volume: 40 % of a small one, and never more than the 8 GiB that etcd suggests. A size that
 * cannot be parsed, such as 1e5000000, was accepted before sizes were limited: Kubernetes caps it at 8 EiB.
 */
export function quotaFor(size: string | number): number {
  const nano = parseQuantity(size);
  if (nano === undefined) return Number(MAX_QUOTA);
  const bytes = nano / 1_000_000_000n;
  const quota = bytes < GI ? (bytes * 2n) / 5n : bytes - LOG_ROOM;
  return Number(quota > MAX_QUOTA ? MAX_QUOTA : quota < 1n ? 1n : quota);
}

/** The size of a volume on which a database of this size fits. */
export const roomFor = (quota: number): number => quota + Number(LOG_ROOM);

/** One hour of history: a watch that was disconnected for less can resume. Users whose clients write a lot set less. */
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
 * A cluster that has a token or an ID but no `status.defaults` was created by the earlier operator, which had no defaults: this
 * operator records them together with the token.
 */
export const defaultsOf = (status: EtcdClusterStatus | undefined): string | undefined =>
  status?.defaults ?? (status?.clusterID === undefined && status?.clusterToken === undefined ? DEFAULTS : undefined);

/** The spec that has this target. What is no part of a target, such as TLS, stays as it is. */
export function specOf(target: Target, spec: EtcdClusterSpec): EtcdClusterSpec {
  const fields: readonly string[] = ['replicas', ...TEMPLATE_FIELDS];
  const others = Object.entries(spec).filter(([field]) => !fields.includes(field));
  return { ...Object.fromEntries(others), ...target };
}

/** The spec with every default filled in: what is latched as the target and copied to new members. */
export function targetOf(spec: EtcdClusterSpec, status?: EtcdClusterStatus): Target {
  const { replicas, storage, progressDeadlineSeconds: _, tls: _tls, auth: _auth, bootstrap: _b, ...rest } = spec;
  const {
    podDisruptionBudget: _budget,
    networkPolicy: _network,
    volumeQuarantine: _q,
    deletionPolicy: _policy,
    suspend: _s,
    updateStrategy: _u,
    maintenance: _m,
    ...template
  } = rest;
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

/** etcd's own default, for members without a quota in their spec. */
const ETCD_QUOTA = 2 * 1024 ** 3;

/** The operator and the kubectl plugin compare the size of a database with it. */
export const quotaOf = ({ spec }: EtcdMember): number => spec.options?.quotaBackendBytes || ETCD_QUOTA;
