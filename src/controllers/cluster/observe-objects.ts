/** The Services and the PodDisruptionBudget of a cluster: from the cache, and by name what the cache does not hold. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { budgetName } from '../../api/names.ts';
import { holding, identity } from '../../domain/ownership.ts';
import type { PodDisruptionBudget, Service } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { type KubeObject, type Ref, type Resource, refKey } from '../../kube/object.ts';
import { podDisruptionBudgets, services } from '../../kube/resources.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { type Looked, wantsPdb } from './observed.ts';

interface ObjectPorts {
  readonly client: Pick<Client, 'get'>;
  readonly services: Store<Service>;
  readonly budgets: Store<PodDisruptionBudget>;
}

/** The cache holds only what carries our label: before a name counts as free, the server is asked. */
export async function observeService(
  ports: ObjectPorts,
  cluster: EtcdCluster,
  name: string,
  signal: AbortSignal,
): Promise<Looked<Service>> {
  const { namespace, uid } = identity(cluster);
  const ref = { namespace, name };
  const cached = ports.services.get(refKey(ref));
  return cached ? holding(cached, uid) : lookUp(ports, services, ref, uid, signal);
}

/** A failed read of one object must not keep the members from being repaired, nor the status from being written. */
async function lookUp<T extends KubeObject>(
  { client }: ObjectPorts,
  resource: Resource<T>,
  ref: Ref,
  uid: string,
  signal: AbortSignal,
): Promise<Looked<T>> {
  const read = await tryGet(client, resource, ref, signal);
  return read.ok ? holding(read.object, uid) : { is: 'unknown', why: read.why };
}

/** Looked for only where there is something to protect. */
export async function observePdb(
  ports: ObjectPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<Looked<PodDisruptionBudget>> {
  const { name, namespace, uid } = identity(cluster);
  const ref = { namespace, name: budgetName(name) };
  const cached = ports.budgets.get(refKey(ref));
  const look = cached === undefined && cluster.status?.clusterID !== undefined && wantsPdb(cluster);
  return look ? lookUp(ports, podDisruptionBudgets, ref, uid, signal) : holding(cached, uid);
}
