/** The Services and the PodDisruptionBudget of a cluster: from the cache, or read by name what the cache lacks. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { pdbName } from '../../api/names.ts';
import { holding, identity } from '../../domain/ownership.ts';
import type { ReadHolding } from '../../domain/unread.ts';
import type { PodDisruptionBudget, Service } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type KubeObject, type Ref, type Resource, refKey } from '../../kube/object.ts';
import { podDisruptionBudgets, services } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { wantsPdb } from './observed.ts';

interface ObjectPorts {
  readonly client: Pick<Client, 'get'>;
  readonly services: Store<Service>;
  readonly pdbs: Store<PodDisruptionBudget>;
}

/** The cache holds only objects with the operator's label, so a foreign object is found only by asking the API server for the name. */
export async function observeService(
  ports: ObjectPorts,
  cluster: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<ReadHolding<Service>> {
  const { namespace, uid } = identity(cluster);
  const ref = { namespace, name };
  const cached = ports.services.get(refKey(ref));
  return cached ? holding(cached, uid) : readByName(ports, services, ref, uid, signal);
}

/** A failed read of one object must not keep members from being repaired, nor the status from being written. */
async function readByName<T extends KubeObject>(
  { client }: ObjectPorts,
  resource: Resource<T>,
  ref: Ref,
  uid: string,
  signal: AbortSignal,
): Promise<ReadHolding<T>> {
  const read = await tryGet(client, resource, ref, signal);
  return read.ok ? holding(read.object, uid) : { is: 'unknown', message: read.message };
}

/** Read only after the bootstrap, if the spec enables it. */
export async function observePdb(
  ports: ObjectPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<ReadHolding<PodDisruptionBudget>> {
  const { name, namespace, uid } = identity(cluster);
  const ref = { namespace, name: pdbName(name) };
  const cached = ports.pdbs.get(refKey(ref));
  const isNeeded = cached === undefined && cluster.status?.clusterID !== undefined && wantsPdb(cluster);
  return isNeeded ? readByName(ports, podDisruptionBudgets, ref, uid, signal) : holding(cached, uid);
}
