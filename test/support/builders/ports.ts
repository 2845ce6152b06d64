/** Ports of controllers for tests: caches with the objects that a test puts into them, a model API server and a model etcd. */

import { mountedBy } from '../../../src/access/mounted.ts';
import { SecretCache } from '../../../src/access/secret-cache.ts';
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import { defragsByCluster, type EtcdDefrag } from '../../../src/api/etcd-defrag.ts';
import { byClusterName, type EtcdMember } from '../../../src/api/etcd-member.ts';
import type { EtcdSnapshot } from '../../../src/api/etcd-snapshot.ts';
import { byCluster, type EtcdSnapshotSchedule } from '../../../src/api/etcd-snapshot-schedule.ts';
import {
  CLUSTER_LABEL,
  etcdClusters,
  etcdDefrags,
  etcdMembers,
  etcdSnapshotSchedules,
  etcdSnapshots,
  memberName,
  POLICY_LABEL,
  peerURL,
  SCHEDULE_LABEL,
} from '../../../src/api/names.ts';
import { certificates } from '../../../src/controllers/cluster/credentials/observe-cert-manager.ts';
import { DefragmentRequests } from '../../../src/controllers/cluster/execute-defragment.ts';
import { DefragmentationLedger } from '../../../src/controllers/cluster/observe-defragmentation-fleet.ts';
import { ReplacementLedger } from '../../../src/controllers/cluster/observe-replacements.ts';
import { SpaceTrends } from '../../../src/controllers/cluster/observe-space-trend.ts';
import { TurnLedger } from '../../../src/controllers/cluster/observe-turns.ts';
import { HashLedger } from '../../../src/controllers/cluster/observe-version-change.ts';
import { DeletedPolicies } from '../../../src/controllers/member/observe-deleted-clusters.ts';
import { wantedPod } from '../../../src/controllers/member/wanted-pod.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import type {
  NetworkPolicy,
  Node,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Service,
} from '../../../src/gen/kube.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import {
  networkPolicies,
  nodes,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  services,
} from '../../../src/kube/resources.ts';
import { ALL_NAMESPACES, Store } from '../../../src/kube/store.ts';
import { systemKeySource } from '../../../src/pki/key-source.ts';
import { ModelEtcd, type ModelNode } from '../../sim/model/etcd.ts';
import { modelPorts } from '../../sim/model/etcd-ports.ts';
import { ModelApiServer } from '../../sim/model/kube.ts';
import { aCluster, aMember, aPod, CLUSTER_UID, FORMED, NOW } from './builders.ts';

export interface ModelWorld extends ReturnType<typeof modelWorld> {}

export function modelWorld(client: ModelApiServer = new ModelApiServer()) {
  const model = new ModelEtcd();
  const members = new Store<EtcdMember>(etcdMembers, [], [byClusterName]);
  const podStore = new Store<Pod>(pods, []);
  const clusters = new Store<EtcdCluster>(etcdClusters, []);
  const defrags = new Store<EtcdDefrag>(etcdDefrags, [], [defragsByCluster, POLICY_LABEL]);
  const images = { repository: 'quay.io/coreos/etcd', allowed: [] };
  return {
    client,
    model,
    etcd: modelPorts(model),
    now: () => NOW,
    images,
    podOf: (object: EtcdMember, cluster: EtcdCluster) =>
      wantedPod({ member: object, cluster, images, hasCompany: true }),
    credentials: new SecretCache({
      client,
      now: () => NOW,
      domain: 'cluster.local',
      look: () => Promise.resolve(undefined),
      mounted: (cluster) => mountedBy({ members, pods: podStore }, cluster),
      graceMs: 120_000,
      clockAheadMs: () => 0,
    }),
    entropy: systemKeySource,
    nodeLostAfterMs: 600_000,
    observedMs: (_key: string, _state: string | undefined) => 0,
    clockAheadMs: (_withinMs: number) => 0,
    clusters,
    defragmentRequests: new DefragmentRequests(),
    defragmentations: new DefragmentationLedger(defrags, 10),
    hashes: new HashLedger(),
    spaceTrends: new SpaceTrends(),
    replacements: new ReplacementLedger(clusters, 10),
    turns: new TurnLedger(clusters, 10),
    deletedPolicies: new DeletedPolicies(clusters),
    members,
    services: new Store<Service>(services, []),
    pods: podStore,
    networkPolicies: new Store<NetworkPolicy>(networkPolicies, []),
    network: { operatorNamespace: 'etcd-system', storeNetworks: [], allowAmbientCredentials: false },
    pdbs: new Store<PodDisruptionBudget>(podDisruptionBudgets, []),
    certificates: new Store(certificates, []),
    volumes: new Store<PersistentVolumeClaim>(persistentVolumeClaims, [], [CLUSTER_LABEL]),
    nodes: new Store<Node>(nodes, []),
    schedules: new Store<EtcdSnapshotSchedule>(etcdSnapshotSchedules, [], [byCluster]),
    defrags,
    snapshots: new Store<EtcdSnapshot>(etcdSnapshots, [], [SCHEDULE_LABEL]),
  };
}

/** An API server that responds to every GET of these plurals with this code. */
export function failingReads(code: number, ...plurals: readonly string[]): ModelApiServer {
  const server = new ModelApiServer();
  const get: typeof server.get = (resource, ...rest) =>
    plurals.includes(resource.plural)
      ? Promise.reject(new ApiError('GET', code, { reason: 'InternalError', message: 'no KMS provider' }))
      : server.get(resource, ...rest);
  return new Proxy(server, {
    get: (target, name) => {
      if (name === 'get') return get;
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** Puts objects into a cache, as a watch event would. */
export function putInCache<T extends KubeObject>(store: Store<T>, ...objects: readonly T[]): void {
  for (const object of objects) store.apply(ALL_NAMESPACES, { type: 'put', object });
}

export const nameOf = (n: number): string => memberName('db', CLUSTER_UID, n);

/** The `n`-th member of the cluster with that uid. */
export function member(n: number, options: Parameters<typeof aMember>[0] = {}, clusterUid = CLUSTER_UID): EtcdMember {
  const made = aMember(options);
  const ownerReferences = (made.metadata.ownerReferences ?? []).map((owner) => ({ ...owner, uid: clusterUid }));
  return { ...made, metadata: { ...made.metadata, name: nameOf(n), uid: `member-${n}`, ownerReferences } };
}

export function podOf(n: number, options: Parameters<typeof aPod>[0] = { ready: true }): Pod {
  const made = aPod({ ...options, status: { podIP: `10.0.0.${n}`, ...options.status } });
  const owners = made.metadata.ownerReferences ?? [];
  const ownerReferences = owners.map((owner) => ({ ...owner, name: nameOf(n), uid: `member-${n}` }));
  return { ...made, metadata: { ...made.metadata, name: nameOf(n), uid: `pod-${n}`, ownerReferences } };
}

/** The cluster as the API server has it. */
export async function storedCluster({ client }: ModelWorld, status: EtcdClusterStatus): Promise<EtcdCluster> {
  const { resourceVersion: _v, uid: _u, ...metadata } = aCluster().metadata;
  const resource: Resource<EtcdCluster> = etcdClusters;
  const fresh: EtcdCluster = { ...aCluster(), metadata };
  await client.create(resource, fresh);
  return client.patch(resource, { namespace: 'ns', name: 'db' }, { status }, { subresource: 'status' });
}

/** A running cluster of `count` voters, each with its EtcdMember, Pod and etcd process; all objects are in the caches. */
export async function runningCluster(world: ModelWorld, count: number): Promise<readonly ModelNode[]> {
  const { model } = world;
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  const initialCluster = numbers.map((n) => `${nameOf(n)}=${peerURL(nameOf(n), 'db', 'ns')}`).join();
  const processes = numbers.map((n) =>
    model.node(nameOf(n), { endpoint: `http://10.0.0.${n}:2379`, peerURL: peerURL(nameOf(n), 'db', 'ns') }),
  );
  for (const process of processes) model.start(process, { initialCluster, state: 'new' });
  model.advance(5_000);
  const clusterID = hexId(processes[0]?.disk?.group.clusterId ?? 0n);
  const cluster = await storedCluster(world, { ...FORMED, clusterID });
  putInCache(world.clusters, cluster);
  putInCache(world.members, ...numbers.map((n) => member(n, { status: { isVoter: true } }, cluster.metadata.uid)));
  putInCache(world.pods, ...numbers.map((n) => podOf(n)));
  return processes;
}
