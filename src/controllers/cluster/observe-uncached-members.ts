/**
 * EtcdMembers that the cache lacks. An operator that has just taken over the Lease may not have received what the previous one
 * created: the API server is asked before a voter counts as an unknown member and is removed, before a cluster counts as lost, and
 * before a seed counts as deleted: the next one has another name, so both could be created.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { identity, isMemberOf } from '../../domain/ownership.ts';
import { type Client, listAll } from '../../kube/client.ts';
import type { Store } from '../../kube/store.ts';
import { type EtcdView, hasNoReadableData, isEntryOf, type MemberView, nameOf } from './observed.ts';

export async function listUncachedMembers(
  { client, members: store }: { readonly client: Client; readonly members: Store<EtcdMember> },
  cluster: EtcdCluster,
  known: readonly MemberView[],
  etcd: EtcdView,
  signal: AbortSignal,
): Promise<readonly EtcdMember[]> {
  const listsUnknown =
    etcd.is === 'answers' &&
    etcd.members.some((entry) => entry.name !== '' && !known.some((m) => isEntryOf(entry, m.object)));
  const { clusterID, membersNamed } = cluster.status ?? {};
  const seedIsMissing = clusterID === undefined && membersNamed !== undefined && known.length === 0;
  const isDoubtful = clusterID === undefined ? seedIsMissing : listsUnknown || known.every(hasNoReadableData);
  if (!isDoubtful) return [];
  // Without a selector: a member that has lost its label still has its data.
  const all = await listAll(client, store.resource, { namespace: identity(cluster).namespace, signal });
  const names = known.map(nameOf);
  return all.filter((m) => isMemberOf(m, cluster) && !names.includes(m.metadata.name ?? ''));
}
