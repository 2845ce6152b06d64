/** The EtcdCluster that is bootstrapped with a stored snapshot. */
import type { EtcdCluster, EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { API_VERSION } from '../../api/names.ts';
import type { SnapshotLocation } from '../../api/snapshot-location.ts';
import { objectKeyOf } from '../../domain/agent-task.ts';
import { identity } from '../../domain/ownership.ts';
import { present } from '../../lib/present.ts';

export interface RestoreFlags {
  readonly replicas?: number;
  readonly etcdVersion?: string;
  readonly storageSize?: string;
}

/** Of the object itself: for a destination, the key is only a prefix. */
function sourceOf(snapshot: EtcdSnapshot): SnapshotLocation {
  const { s3, gcs, azure, pvc } = snapshot.spec.destination;
  const key = objectKeyOf(snapshot.spec, identity(snapshot));
  if (s3) return { s3: { ...s3, key } };
  if (gcs) return { gcs: { ...gcs, key } };
  if (azure) return { azure: { ...azure, key } };
  return { pvc: { claimName: pvc?.claimName ?? '', subPath: key } };
}

/** Of the cluster that the snapshot was taken of, without what belongs to it alone. A paused one does not pause the new one. */
const inherited = ({ bootstrap: _data, suspend: _state, replicas, ...spec }: EtcdClusterSpec): EtcdClusterSpec =>
  replicas ? { replicas, ...spec } : spec;

/** A sentence when it cannot be made. */
export function restoredCluster(
  snapshot: EtcdSnapshot,
  name: string,
  like: EtcdCluster | undefined,
  flags: RestoreFlags,
): EtcdCluster | string {
  const { artifact, phase } = snapshot.status ?? {};
  const { name: from, namespace } = identity(snapshot);
  if (phase !== 'Complete' || !artifact) return `snapshot ${from} is not complete: it cannot be restored`;
  const version = flags.etcdVersion ?? like?.spec.version ?? artifact.etcdVersion;
  if (version === undefined) return `pass --etcd-version: neither ${from} nor a cluster states one`;
  if (!like && flags.storageSize === undefined)
    return `there is no EtcdCluster ${snapshot.spec.clusterRef.name} whose spec could be used: name one with --like, or pass --storage-size`;
  const storage =
    flags.storageSize === undefined ? {} : { storage: { ...like?.spec.storage, size: flags.storageSize } };
  const { encryption } = snapshot.spec;
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdCluster',
    metadata: { name, namespace },
    spec: {
      ...(like && inherited(like.spec)),
      version,
      ...present({ replicas: flags.replicas }),
      ...storage,
      bootstrap: {
        restore: {
          source: { ...sourceOf(snapshot), ...present({ checksum: artifact.checksum }) },
          ...present({ encryption }),
        },
      },
    },
  };
}

/** Certificates of the user have the names of the first cluster. */
export function restoreWarnings({ metadata: { name = '', namespace = '' }, spec }: EtcdCluster): readonly string[] {
  const { client, peer } = spec.tls ?? {};
  const secrets = [client?.serverSecretRef?.name, peer?.secretRef?.name].flatMap((each) => each ?? []);
  return secrets.length === 0
    ? []
    : [`the certificates in ${secrets.join(' and ')} must be valid for *.${name}.${namespace}.svc, too`];
}
