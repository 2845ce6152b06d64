/** The NetworkPolicies of a cluster: from the cache, or read by name what the cache lacks. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { agentPolicyName, memberPolicyName } from '../../api/names.ts';
import { holding, identity } from '../../domain/ownership.ts';
import type { ReadHolding } from '../../domain/unread.ts';
import type { NetworkPolicy } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { type NetworkSettings, networkPolicies } from './network-policy.ts';
import { observeObject } from './observe-objects.ts';
import type { ClusterFacts } from './observed.ts';

export interface NetworkPorts {
  readonly client: Pick<Client, 'get'>;
  /** Absent: no NetworkPolicies are made. */
  readonly networkPolicies?: Store<NetworkPolicy>;
  readonly network?: NetworkSettings;
}

export async function observeNetwork(
  { client, networkPolicies: store, network: settings }: NetworkPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<Pick<ClusterFacts, 'network'>> {
  if (!store || !settings) return {};
  const { name, namespace, uid } = identity(cluster);
  const wanted = networkPolicies(cluster, settings);
  const read = (called: string, isWanted: boolean): Promise<ReadHolding<NetworkPolicy>> =>
    isWanted
      ? observeObject(client, store, cluster, called, signal)
      : Promise.resolve(unlessForeign(holding(store.get(refKey({ namespace, name: called })), uid)));
  const [members, agents] = await Promise.all([
    read(memberPolicyName(name), wanted.members !== undefined),
    read(agentPolicyName(name), wanted.agents !== undefined),
  ]);
  return { network: { settings, held: { members, agents } } };
}

/** A policy of another owner is no conflict while none of this name is wanted. */
const unlessForeign = (held: ReadHolding<NetworkPolicy>): ReadHolding<NetworkPolicy> =>
  held.is === 'foreign' ? { is: 'absent' } : held;

/** Wanted NetworkPolicies that the cache lacks: the garbage collector may have deleted them with their cluster. */
export function lacksPolicy({ networkPolicies: store, network }: NetworkPorts, cluster: EtcdCluster): boolean {
  if (!store || !network) return false;
  const { namespace } = identity(cluster);
  return Object.values(networkPolicies(cluster, network)).some(
    (policy: NetworkPolicy | undefined) =>
      policy !== undefined && store.get(refKey({ namespace, name: policy.metadata.name ?? '' })) === undefined,
  );
}
