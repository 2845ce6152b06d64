/** Members from the cache: EtcdMembers, their Pods and PVCs. */
import { mountIn } from '../../access/evaluate/mounts.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, drainingSince, volumeClaimName } from '../../api/names.ts';
import { FETCHED_VOLUME } from '../../domain/agent-task.ts';
import { isCordoned, isOutOfService, readinessOf, SELECTED_NODE, ZONE_LABEL } from '../../domain/node.ts';
import { controllerOf, identity, isMemberOf } from '../../domain/ownership.ts';
import { isPodOver, isPodReady } from '../../domain/pod.ts';
import { stampIn } from '../../domain/pod-template.ts';
import type { Container, Node, PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import type { Client } from '../../kube/client.ts';
import { refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { tryGet } from '../../kube/try-get.ts';
import { present } from '../../lib/present.ts';
import { evidence, isNotBeingDeleted, type MemberView, type PodView } from './observed.ts';
import { restoreOf } from './restore.ts';

export interface MemberStores {
  readonly members: Store<EtcdMember>;
  readonly pods: Store<Pod>;
  readonly volumes: Store<PersistentVolumeClaim>;
  readonly nodes: Pick<Store<Node>, 'get' | 'missing' | 'onChange'>;
}

export function memberViews(ports: MemberStores, cluster: EtcdCluster): readonly MemberView[] {
  const { name, namespace } = identity(cluster);
  return ports.members
    .byIndex(namespace, CLUSTER_LABEL, name)
    .filter((m) => isMemberOf(m, cluster))
    .map((object) => viewOf(ports, cluster, object));
}

export const viewOf = (ports: Omit<MemberStores, 'members'>, cluster: EtcdCluster, object: EtcdMember): MemberView => {
  const { namespace = '', name = '' } = object.metadata;
  const pvc = ports.volumes.get(refKey({ namespace, name: volumeClaimName(name) }));
  const pod = ports.pods.get(refKey({ namespace, name }));
  const nodeName = pod?.spec?.nodeName ?? pvc?.metadata.annotations?.[SELECTED_NODE];
  const node = nodeName === undefined ? undefined : ports.nodes.get(refKey({ namespace: '', name: nodeName }));
  return {
    object,
    pod: podView(pod, cluster, object),
    ...(pvc && { pvc: pvc.metadata.deletionTimestamp === undefined ? 'present' : 'terminating', pvcObject: pvc }),
    ...(nodeName !== undefined && (node ? isOutOfService(node) : !ports.nodes.missing) && { nodeGone: true }),
    ...(node && { nodeReady: readinessOf(node) }),
    ...(node && isCordoned(node) && { nodeCordoned: true }),
    ...present({ zone: node?.metadata.labels?.[ZONE_LABEL] }),
  };
};

/**
 * Members with failure evidence, as the API server has them. Their status changes with every crash: behind a watch that is seconds
 * late, the resourceVersion precondition of their deletion would fail for ever.
 */
export const withFreshEvidence = <View extends MemberView>(
  { client, members: store }: { readonly client: Pick<Client, 'get'>; readonly members: Store<EtcdMember> },
  members: readonly View[],
  signal: AbortSignal,
): Promise<readonly View[]> =>
  Promise.all(
    members.map(async (m) => {
      if (m.self || !isNotBeingDeleted(m) || evidence(m) === undefined) return m;
      const { namespace = '', name = '', uid } = m.object.metadata;
      const read = await tryGet(client, store.resource, { namespace, name }, signal);
      return read.ok && read.object?.metadata.uid === uid ? { ...m, object: read.object } : m;
    }),
  );

/** Only a Pod that this EtcdMember controls: a foreign Pod can have the same name. */
function podView(pod: Pod | undefined, cluster: EtcdCluster, member: EtcdMember): PodView {
  if (!pod || controllerOf(pod)?.uid !== member.metadata.uid) return { is: 'absent' };
  const { podIP, startTime, containerStatuses } = pod.status ?? {};
  const { creationTimestamp, deletionTimestamp } = pod.metadata;
  const container = containerStatuses?.find((c) => c.name === 'etcd');
  const running = container?.state?.running?.startedAt;
  const draining = drainingSince(pod.metadata.annotations);
  const [client, peer] = [mountIn(pod, 'client', cluster), mountIn(pod, 'peer', cluster)];
  return {
    is: 'present',
    ...present({ uid: pod.metadata.uid, restore: restoreOf(pod) }),
    ...(pod.spec?.volumes?.some(({ name }) => name === FETCHED_VOLUME) === true && { isForRestore: true }),
    ...(deletionTimestamp !== undefined && { terminating: true, endsBy: Date.parse(deletionTimestamp) }),
    ready: isPodReady(pod),
    ...(podIP !== undefined && !isPodOver(pod) && { ip: podIP }),
    ...(creationTimestamp !== undefined && { createdAt: Date.parse(creationTimestamp) }),
    ...(startTime !== undefined && { startedAt: Date.parse(startTime) }),
    ...(running !== undefined && { runningSince: Date.parse(running) }),
    ...((container?.restartCount ?? 0) > 0 && { restarted: true }),
    maxLearners: maxLearnersOf(pod),
    ...present({ preStopMs: preStopMs(pod) }),
    ...(draining !== undefined && { drainingSince: Date.parse(draining) || 0 }),
    ...((client || peer) && { tls: present({ client, peer }) }),
    ...present({ stamp: stampIn(pod.metadata.annotations), node: pod.spec?.nodeName }),
  };
}

const etcdIn = (pod: Pod): Container | undefined => pod.spec?.containers.find(({ name }) => name === 'etcd');

const preStopMs = (pod: Pod): number | undefined => {
  const seconds = etcdIn(pod)?.lifecycle?.preStop?.sleep?.seconds;
  return seconds === undefined ? undefined : seconds * 1_000;
};

/** One without the flag, and in versions before 3.6. */
function maxLearnersOf(pod: Pod): number {
  const command = etcdIn(pod)?.command ?? [];
  const stated = command.find((arg) => arg.startsWith('--max-learners='))?.split('=')[1];
  return stated === undefined ? 1 : Number(stated);
}
