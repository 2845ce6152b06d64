/**
 * Members that etcd lists and the cache has not heard of: before somebody who votes counts as a stranger and is removed, the server
 * is asked. One that takes over the lease may be behind with what the one before it has made.
 */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { clusterSelector } from '../api/names.ts';
import { controllerOf } from '../api/ownership.ts';
import { type Client, listAll } from '../kube/client.ts';
import type { Store } from '../kube/store.ts';
import { type EtcdView, identity, isEntryOf, type MemberView, nameOf } from './observed.ts';

export async function unheardOf(
  { client, members: store }: { readonly client: Client; readonly members: Store<EtcdMember> },
  cluster: EtcdCluster,
  heard: readonly MemberView[],
  { clusterID, members }: EtcdView & { readonly is: 'answers' },
  signal: AbortSignal,
): Promise<readonly EtcdMember[]> {
  const { name, namespace, uid } = identity(cluster);
  const isStrange = members.some((entry) => entry.name !== '' && !heard.some((m) => isEntryOf(entry, m.object)));
  if (clusterID !== cluster.status?.clusterID || !isStrange) return [];
  const all = await listAll(client, store.resource, { namespace, selector: clusterSelector(name), signal });
  const names = heard.map(nameOf);
  return all.filter((m) => controllerOf(m)?.uid === uid && !names.includes(m.metadata.name ?? ''));
}
