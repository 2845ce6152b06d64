/** The Services and the PodDisruptionBudget of a cluster: from the cache, or read by name what the cache lacks. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { pdbName } from '../../api/names.ts';
import { holding, identity } from '../../domain/ownership.ts';
import type { ReadHolding } from '../../domain/unread.ts';
import type { PodDisruptionBudget, Service } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type KubeObject, refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { wantsPdb } from './observed.ts';

export interface ObjectPorts {
  readonly client: Pick<Client, 'get'>;
  readonly services: Store<Service>;
  readonly pdbs: Store<PodDisruptionBudget>;
}

/**
 * The cache holds only objects with the operator's label, so a foreign object is found only by asking the API server for the name.
 * A failed read of one object must not keep members from being repaired, nor the status from being written.
 */
export async function observeObject<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  store: Store<T>,
  cluster: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<ReadHolding<T>> {
  const { namespace, uid } = identity(cluster);
  const ref = { namespace, name };
  const cached = store.get(refKey(ref));
  if (cached) return holding(cached, uid);
  const read = await tryGet(client, store.resource, ref, signal);
  return read.ok ? holding(read.object, uid) : { is: 'unknown', message: read.message };
}

/** Read only after the bootstrap, if the spec enables it. */
export async function observePdb(
  { client, pdbs }: ObjectPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<ReadHolding<PodDisruptionBudget>> {
  const { name, namespace, uid } = identity(cluster);
  const isNeeded = cluster.status?.clusterID !== undefined && wantsPdb(cluster);
  if (isNeeded) return observeObject(client, pdbs, cluster, pdbName(name), signal);
  return holding(pdbs.get(refKey({ namespace, name: pdbName(name) })), uid);
}
