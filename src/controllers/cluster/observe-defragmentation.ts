/** The EtcdDefrag whose turn it is, and what a defragmentation has to wait for. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import { BY_CLUSTER } from '../../api/names.ts';
import { queueOf } from '../../domain/defragmentation.ts';
import { identity } from '../../domain/ownership.ts';
import { askMember } from '../../etcd/ask-member.ts';
import type { Ask } from '../../etcd/call.ts';
import type { EtcdPort } from '../../etcd/client.ts';
import type { KvPort } from '../../etcd/kv.ts';
import { type Client, listAll } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { present } from '../../lib/present.ts';
import { requestOf } from './defragmentation.ts';
import { endpointsOf } from './etcd-calls.ts';
import type { DefragmentRequests } from './execute-defragment.ts';
import type { DefragmentationLedger } from './observe-defragmentation-fleet.ts';
import type { Gathered, MemberView } from './observed.ts';

export interface DefragPorts {
  readonly client: Client;
  /** Indexed by cluster. */
  readonly defrags: Store<EtcdDefrag>;
  readonly snapshots: Store<EtcdSnapshot>;
  readonly observedMs: (key: string, state: string | undefined) => number;
  readonly defragmentRequests: DefragmentRequests;
  readonly defragmentations: Pick<DefragmentationLedger, 'fleet' | 'claim' | 'next' | 'forget'>;
}

type Facts = Pick<
  Gathered,
  'defrag' | 'defragResponse' | 'defragFleet' | 'remedyDefrag' | 'remedyObservedMs' | 'streams'
>;

export const remedyKey = (key: string): string => `Remedy ${key}`;

export async function observeDefrag(ports: DefragPorts, cluster: EtcdCluster, signal: AbortSignal): Promise<Facts> {
  const { namespace, name } = identity(cluster);
  const [defrag] = queueOf(ports.defrags.byIndex(namespace, BY_CLUSTER, name));
  const marker = cluster.status?.defragmentation;
  const defragResponse = marker && ports.defragmentRequests.responseTo(`${namespace}/${name}`, requestOf(marker));
  const { startedAt, finishedAt, defrag: named } = cluster.status?.remedy ?? {};
  const isCompacting = startedAt !== undefined && finishedAt === undefined && named === undefined;
  const remedyObservedMs = ports.observedMs(remedyKey(`${namespace}/${name}`), isCompacting ? startedAt : undefined);
  const remedyDefrag = named === undefined ? undefined : ports.defrags.get(refKey({ namespace, name: named }));
  return {
    ...present({ defragResponse, remedyDefrag }),
    ...(isCompacting && { remedyObservedMs }),
    ...(defrag && {
      defrag,
      defragFleet: ports.defragmentations.fleet(cluster),
      streams: await streamsOf(ports, cluster, signal),
    }),
  };
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

/**
 * The member that is being defragmented, by what it reports after a read, which waits for the end: the size that it has reported
 * before may be that from before the defragmentation, which would count as one without effect.
 */
export const withReads = async <View extends MemberView>(
  etcd: Pick<EtcdPort, 'status'> & { readonly kv: Pick<KvPort, 'read'> },
  ask: Omit<Ask, 'endpoint'>,
  { status }: EtcdCluster,
  members: readonly View[],
): Promise<readonly View[]> =>
  Promise.all(
    members.map(async (m) => {
      const [endpoint] = endpointsOf(m);
      if (endpoint === undefined || status?.defragmentation?.member !== m.object.metadata.name) return m;
      const at = { ...ask, endpoint };
      // It has not reported its status either: a read would only make this reconcile longer.
      if (!m.self || !(await etcd.kv.read(at)).ok) return { ...m, answersReads: false };
      const expected = { clusterID: status?.clusterID, memberID: m.object.status?.memberID };
      const after = await askMember(etcd, at, expected);
      if (after.is !== 'answers') return { ...m, answersReads: false };
      return { ...m, self: { ...m.self, ...after.self }, answersReads: true };
    }),
  );
