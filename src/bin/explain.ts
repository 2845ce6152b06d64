/** The decision of the cluster controller about one cluster, made on the machine of a user with what this user may read. It writes nothing. */
import { mountedBy } from '../access/mounted.ts';
import { SecretCache } from '../access/secret-cache.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { defragsByCluster } from '../api/etcd-defrag.ts';
import { byClusterName, type EtcdMember } from '../api/etcd-member.ts';
import { byCluster } from '../api/etcd-snapshot-schedule.ts';
import { CLIENT_PORT, CLUSTER_LABEL, MANAGED_SELECTOR, PEER_PORT, SCHEDULE_LABEL } from '../api/names.ts';
import type { Explanation } from '../cli/assess/explanation.ts';
import type { VersionChecks } from '../cli/assess/upgrade.ts';
import { type Context, UserError, type Way } from '../cli/context.ts';
import { explain as explainError } from '../cli/gather/access-error.ts';
import { clusterResource } from '../controllers/cluster/controller.ts';
import { certificates } from '../controllers/cluster/credentials/observe-cert-manager.ts';
import { decide } from '../controllers/cluster/decide.ts';
import { DefragmentRequests } from '../controllers/cluster/execute-defragment.ts';
import { explain, explainVersion } from '../controllers/cluster/explain.ts';
import { type ClusterPorts, observe } from '../controllers/cluster/observe.ts';
import { DefragmentationLedger } from '../controllers/cluster/observe-defragmentation-fleet.ts';
import { ReplacementLedger } from '../controllers/cluster/observe-replacements.ts';
import { SpaceTrends } from '../controllers/cluster/observe-space-trend.ts';
import { TurnLedger } from '../controllers/cluster/observe-turns.ts';
import { HashLedger } from '../controllers/cluster/observe-version-change.ts';
import type { Gathered, MemberView } from '../controllers/cluster/observed.ts';
import { defragResource } from '../controllers/defrag/controller.ts';
import { memberResource } from '../controllers/member/controller.ts';
import { wantedPod } from '../controllers/member/wanted-pod.ts';
import { snapshotResource } from '../controllers/snapshot/controller.ts';
import { scheduleResource } from '../controllers/snapshot-schedule/controller.ts';
import { HANDSHAKE_TIMEOUT_MS } from '../domain/timing.ts';
import { EtcdClient } from '../etcd/client.ts';
import { servedFingerprint } from '../etcd/handshake.ts';
import { openSession } from '../etcd/transport.ts';
import type { Pod } from '../gen/kube.ts';
import { type Client, listAll } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import type { KubeObject } from '../kube/object.ts';
import { nodes, persistentVolumeClaims, podDisruptionBudgets, pods, services } from '../kube/resources.ts';
import { Store } from '../kube/store.ts';
import { systemKeySource } from '../pki/key-source.ts';
import { NO_MEMORY } from '../runtime/plan.ts';
import { parseFlags } from './flags.ts';

/** What only the operator's own process knows. */
const OPERATOR_ONLY =
  'which steps of the running operator have failed, and for how long it has observed a state: see its log. Its flags are taken to be the defaults';

const CLUSTERS = 'clusters: ';

const refuse = (): never => {
  throw new Error('kubectl etcd explain writes nothing');
};
/** A Pod is not tried out: the user may not be allowed to create one, which says nothing about the operator. */
const readOnly = (client: Client): Client => ({
  get: (...given) => client.get(...given),
  pages: (...given) => client.pages(...given),
  watch: (...given) => client.watch(...given),
  dryRunCreate: (_, object) => Promise.resolve(object),
  create: refuse,
  apply: refuse,
  patch: refuse,
  delete: refuse,
});

async function filled<T extends KubeObject>(
  client: Client,
  store: Store<T>,
  namespace: string,
  what: string,
  limits: string[],
): Promise<Store<T>> {
  const [shard = ''] = store.shards;
  try {
    const where = { ...(shard !== '' && { namespace }), ...(store.selector && { selector: store.selector }) };
    const found = await listAll(client, store.resource, where);
    store.apply(shard, { type: 'restart' });
    for (const object of found) store.apply(shard, { type: 'put', object });
    store.apply(shard, { type: 'synced', resourceVersion: '0' });
  } catch (error) {
    if (isNotFound(error)) store.apply(shard, { type: 'missing' });
    else limits.push(`${what}: ${explainError(error)}`);
  }
  return store;
}

async function storesFor(client: Client, namespace: string, limits: string[]) {
  const own = [namespace];
  const fill = <T extends KubeObject>(store: Store<T>, what: string) => filled(client, store, namespace, what, limits);
  const [clusters, members, schedules, snapshots, defrags, servicesOf, podsOf, volumes, pdbs, requested] =
    await Promise.all([
      fill(new Store(clusterResource, own), CLUSTERS.slice(0, -2)),
      fill(new Store(memberResource, own, [byClusterName]), 'members'),
      fill(new Store(scheduleResource, own, [byCluster]), 'schedules'),
      fill(new Store(snapshotResource, own, [SCHEDULE_LABEL]), 'snapshots'),
      fill(new Store(defragResource, own, [defragsByCluster]), 'defragmentations'),
      fill(new Store(services, own, [], MANAGED_SELECTOR), 'Services'),
      fill(new Store(pods, own, [], MANAGED_SELECTOR), 'Pods'),
      fill(new Store(persistentVolumeClaims, own, [CLUSTER_LABEL], MANAGED_SELECTOR), 'PVCs'),
      fill(new Store(podDisruptionBudgets, own, [], MANAGED_SELECTOR), 'PodDisruptionBudgets'),
      fill(new Store(certificates, own, [], MANAGED_SELECTOR), 'Certificates'),
    ]);
  return {
    clusters,
    members,
    schedules,
    snapshots,
    defrags,
    services: servicesOf,
    pods: podsOf,
    volumes,
    pdbs,
    certificates: requested,
  };
}

/** Without the permission: a node that could not be read is not one that was deleted. */
async function nodesFor(client: Client, limits: string[]): Promise<ClusterPorts['nodes']> {
  const before = limits.length;
  const store = await filled(client, new Store(nodes, []), '', 'nodes, which count as Ready', limits);
  if (limits.length > before) store.apply('', { type: 'missing' });
  return store;
}

/** The ways to the members: the operator dials Pod IPs, this machine cannot. */
async function waysTo(context: Context, found: Iterable<Pod>): Promise<ReadonlyMap<string, Way>> {
  const ways = [...found].flatMap(({ metadata: { namespace = '', name = '' }, status }) =>
    status?.podIP === undefined
      ? []
      : [CLIENT_PORT, PEER_PORT].map(
          async (port) => [`${status.podIP}:${port}`, await context.reach({ namespace, name }, port)] as const,
        ),
  );
  return new Map(await Promise.all(ways));
}

const memberFact = ({ object, pod, self, pvc, nodeGone }: MemberView): string => {
  const parts = [
    object.status?.isVoter === true ? 'voter' : object.status?.memberID === undefined ? 'has not joined' : 'learner',
    pod.is === 'absent' ? 'no Pod' : pod.ready ? 'Pod ready' : 'Pod not ready',
    self
      ? `etcd ${self.version} responds, ${self.leader === undefined ? 'has no leader' : 'follows a leader'}`
      : 'etcd does not respond',
    ...(self && self.alarms.length > 0 ? [`alarms ${self.alarms.join(', ')}`] : []),
    ...(pvc === 'terminating' ? ['its PVC is being deleted'] : []),
    ...(nodeGone ? ['its node is gone'] : []),
  ];
  return `${object.metadata.name}: ${parts.join('; ')}`;
};

function rolloutFacts({ status }: EtcdCluster): readonly string[] {
  const { rollout, defragmentation } = status ?? {};
  const { since, failed } = rollout ?? {};
  return [
    ...(since === undefined ? [] : [`recorded: a rollout since ${since}`]),
    ...(failed ? [`recorded: the rollout has failed at ${failed.member} at ${failed.at}: ${failed.message}`] : []),
    ...(defragmentation
      ? [
          `recorded: ${defragmentation.member} is being defragmented by EtcdDefrag ${defragmentation.defrag} since ${defragmentation.startedAt}`,
        ]
      : []),
  ];
}

const factsOf = ({ cluster, members, etcd }: Gathered): readonly string[] => {
  const { spec, status, metadata } = cluster;
  return [
    `spec: ${spec.replicas ?? 3} members of etcd ${spec.version}, generation ${metadata.generation ?? 0}${spec.suspend ? ', suspended' : ''}`,
    `recorded: cluster ID ${status?.clusterID ?? 'none'}, target ${status?.observed?.replicas ?? 'none'} members`,
    ...rolloutFacts(cluster),
    etcd.is === 'answers'
      ? `etcd lists ${etcd.members.length} members, ${etcd.members.filter(({ isLearner }) => isLearner).length} of them learners`
      : `etcd gave no member list: ${etcd.is === 'notAsked' ? 'no member has a Pod' : etcd.message}`,
    ...members.map(memberFact),
  ];
};

/** As the operator observes it. `undefined`: there is no such cluster. */
async function gather(context: Context, name: string, limits: string[]): Promise<Gathered | undefined> {
  const { namespace, signal, now } = context;
  const client = readOnly(context.client);
  const flags = parseFlags([], {});
  const stores = await storesFor(client, namespace, limits);
  // Without this, a user who may not list clusters would be informed that there is none.
  const unlisted = limits.find((limit) => limit.startsWith(CLUSTERS));
  if (unlisted !== undefined) throw new UserError(unlisted.slice(CLUSTERS.length));
  const ways = await waysTo(context, stores.pods.all());
  const local = (endpoint: string): string => {
    const { protocol, host } = new URL(endpoint);
    return `${protocol}//${ways.get(host)?.address ?? host}`;
  };
  const etcd = new EtcdClient(() => performance.now(), {
    open: (target) => openSession({ ...target, endpoint: local(target.endpoint) }),
  });
  const images = { repository: flags.etcdImageRepository, allowed: flags.etcdImageAllowed };
  const ports: ClusterPorts = {
    ...stores,
    nodes: await nodesFor(client, limits),
    client,
    etcd,
    now,
    images,
    podOf: (member: EtcdMember, cluster: EtcdCluster) => wantedPod({ member, cluster, images, hasCompany: true }),
    credentials: new SecretCache({
      client,
      now,
      domain: flags.clusterDomain,
      look: (endpoint, tls) => servedFingerprint(local(endpoint), tls, HANDSHAKE_TIMEOUT_MS),
      mounted: (cluster) => mountedBy(stores, cluster),
      graceMs: flags.rotationGraceSeconds * 1000,
      clockAheadMs: () => 0,
    }),
    entropy: systemKeySource,
    defragmentRequests: new DefragmentRequests(),
    defragmentations: new DefragmentationLedger(stores.defrags, flags.defragmentationsAtOnce),
    hashes: new HashLedger(),
    spaceTrends: new SpaceTrends(),
    replacements: new ReplacementLedger(stores.clusters, flags.replacementsPerHour),
    turns: new TurnLedger(stores.clusters, flags.maxRollingClusters),
    observedMs: () => 0,
    clockAheadMs: () => 0,
  };
  try {
    return await observe(ports, `${namespace}/${name}`, signal, NO_MEMORY);
  } finally {
    etcd.close();
    for (const way of ways.values()) way.close();
  }
}

export async function explainCluster(context: Context, name: string): Promise<Explanation | undefined> {
  const limits = [OPERATOR_ONLY];
  const gathered = await gather(context, name, limits);
  if (!gathered) return undefined;
  const { rule, message } = decide(gathered);
  return { decision: { rule, message }, stages: explain(gathered), facts: factsOf(gathered), limits };
}

/** What cannot be read is a limit, and no reason to refuse an upgrade: the operator asks the same rules. */
export async function checkVersion(
  context: Context,
  name: string,
  version: string,
): Promise<VersionChecks | undefined> {
  const limits: string[] = [];
  try {
    const gathered = await gather(context, name, limits);
    return gathered && { found: explainVersion(gathered, version), limits };
  } catch (error) {
    return { found: [], limits: [explainError(error)] };
  }
}
