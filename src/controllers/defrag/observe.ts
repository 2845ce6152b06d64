/** Observes one EtcdDefrag: its cluster, and the others of the same cluster. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import { BY_CLUSTER } from '../../api/names.ts';
import { isFinished, queueOf } from '../../domain/defragmentation.ts';
import { identity } from '../../domain/ownership.ts';
import type { Client } from '../../kube/client.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import type { Observed } from './observed.ts';

export interface DefragPorts {
  readonly client: Client;
  readonly now: () => number;
  readonly clusters: Store<EtcdCluster>;
  /** Indexed by cluster. */
  readonly defrags: Store<EtcdDefrag>;
}

export async function observe(ports: DefragPorts, key: string, signal: AbortSignal): Promise<Observed | undefined> {
  const object = ports.defrags.get(key);
  if (!object) return undefined;
  const { namespace, uid } = identity(object);
  const ref = { namespace, name: object.spec.clusterRef.name ?? '' };
  // The cache may not have a cluster that was created a moment ago. A GET without a name would be a LIST.
  const read =
    ref.name === '' || isFinished(object) ? undefined : () => ports.client.get(ports.clusters.resource, ref, signal);
  const [first] = queueOf(ports.defrags.byIndex(namespace, BY_CLUSTER, ref.name));
  const ahead = first && identity(first).uid !== uid ? identity(first).name : undefined;
  return {
    now: ports.now(),
    object,
    cluster: ports.clusters.get(refKey(ref)) ?? (await read?.()),
    ...(ahead !== undefined && { ahead }),
  };
}
