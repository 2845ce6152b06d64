/** The EtcdDefrag whose turn it is, and what a defragmentation has to wait for. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { BY_CLUSTER } from '../../api/names.ts';
import { queueOf } from '../../domain/defragmentation.ts';
import { identity } from '../../domain/ownership.ts';
import type { Ask } from '../../etcd/call.ts';
import type { KvPort } from '../../etcd/kv.ts';
import { type Client, listAll } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Store } from '../../kube/store.ts';
import { endpointsOf } from './etcd-calls.ts';
import type { Gathered, MemberView } from './observed.ts';

export interface DefragPorts {
  readonly client: Client;
  /** Indexed by cluster. */
  readonly defrags: Store<EtcdDefrag>;
  readonly snapshots: Store<EtcdSnapshot>;
}

type Facts = Pick<Gathered, 'defrag' | 'streams'>;

export async function observeDefrag(ports: DefragPorts, cluster: EtcdCluster, signal: AbortSignal): Promise<Facts> {
  const { namespace, name } = identity(cluster);
  const [defrag] = queueOf(ports.defrags.byIndex(namespace, BY_CLUSTER, name));
  return defrag ? { defrag, streams: await streamsOf(ports, cluster, signal) } : {};
}

/** From the API server: a cache that is a second late would not have a snapshot that has just started. */
async function streamsOf(
  ports: DefragPorts,
  cluster: EtcdCluster,
  signal: AbortSignal,
): Promise<readonly string[] | string> {
  const { namespace, name } = identity(cluster);
  try {
    const snapshots = await listAll(ports.client, ports.snapshots.resource, { namespace, signal });
    return snapshots.filter(({ spec }) => spec.clusterRef.name === name).flatMap((s) => s.status?.streamsFrom ?? []);
  } catch (error) {
    return isNotFound(error) ? [] : String(error); // without the CRD there are no snapshots
  }
}

/** Whether the member that is being defragmented serves again. Its status answers all the time. */
export const withReads = async <View extends MemberView>(
  kv: Pick<KvPort, 'read'>,
  ask: Omit<Ask, 'endpoint'>,
  { status }: EtcdCluster,
  members: readonly View[],
): Promise<readonly View[]> =>
  Promise.all(
    members.map(async (m) => {
      const [endpoint] = endpointsOf(m);
      if (endpoint === undefined || status?.defragmentation?.member !== m.object.metadata.name) return m;
      return { ...m, answersReads: (await kv.read({ ...ask, endpoint })).ok };
    }),
  );
