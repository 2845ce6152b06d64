/** The member controller: its watches and its reconciler. */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember, EtcdMemberStatus } from '../../api/etcd-member.ts';
import { CLUSTER_LABEL, COMPONENT_LABEL, etcdMembers } from '../../api/names.ts';
import { controllerOf } from '../../domain/ownership.ts';
import { isPodReady } from '../../domain/pod.ts';
import { isSuspended } from '../../domain/suspend.ts';
import type { Node, Pod } from '../../gen/kube.ts';
import { type KubeObject, keyOf, type Resource, refKey } from '../../kube/object.ts';
import type { AnyStore, Store } from '../../kube/store.ts';
import { sameJson } from '../../lib/merge-patch.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import { decide } from './decide.ts';
import { type MemberPorts, observe } from './observe.ts';
import type { Observed } from './observed.ts';
import { isMinor, needsVersion } from './status.ts';

export const memberResource: Resource<EtcdMember> = etcdMembers;

export const memberReconciler = (ports: MemberPorts): Reconciler<Observed, EtcdMemberStatus> => ({
  name: 'member',
  resource: memberResource,
  observe: (key, signal, memory) => observe(ports, key, signal, memory),
  subject: (observed) => observed.member,
  decide,
  isMinor,
  needsVersion,
});

/** Enqueues a member when it, its Pod, its PVC, its node or its cluster changes. */
export function wireMember(ports: MemberPorts, enqueue: (key: string) => void): void {
  ports.members.onChange((before, after) => enqueue(keyOf((after ?? before) as KubeObject)));
  const ownerOf = (object: KubeObject | undefined): void => {
    const name = object && memberOf(object);
    if (name !== undefined) enqueue(refKey({ namespace: object?.metadata.namespace ?? '', name }));
  };
  const owned: readonly AnyStore[] = [ports.pods, ports.volumes];
  for (const store of owned)
    store.onChange((before, after) => {
      ownerOf(before);
      ownerOf(after);
    });
  ports.nodes.onChange((before, after) => {
    if (sameJson(standing(before), standing(after))) return;
    const { name } = (after ?? before)?.metadata ?? {};
    for (const pod of ports.pods.all()) if (pod.spec?.nodeName === name) ownerOf(pod);
    for (const claim of ports.volumes.all()) if (!ports.pods.get(podKey(claim))) ownerOf(claim);
  });
  ports.clusters.onChange((before, after) => {
    const known = sameJson(fate(before), fate(after));
    const cluster = after ?? before;
    const { namespace = '', name = '' } = cluster?.metadata ?? {};
    // A member that is being deleted waits for the other members, and any change of the cluster may be about them.
    for (const member of ports.members.byIndex(namespace, CLUSTER_LABEL, name))
      if (!known || member.metadata.deletionTimestamp !== undefined) enqueue(keyOf(member));
  });
}

/** What members depend on in a node. Its heartbeats would reconcile every member. */
const standing = (node: Node | undefined) =>
  node && {
    ready: node.status?.conditions?.find((c) => c.type === 'Ready')?.status,
    taints: node.spec?.taints?.map((t) => t.key),
  };

/** What members depend on in their cluster: most of its status is derived from theirs, and would reconcile them in a loop. */
const fate = (cluster: EtcdCluster | undefined) =>
  cluster && {
    uid: cluster.metadata.uid,
    deleting: cluster.metadata.deletionTimestamp,
    id: cluster.status?.clusterID,
    suspended: isSuspended(cluster),
  };

const podKey = (claim: KubeObject): string =>
  refKey({ namespace: claim.metadata.namespace ?? '', name: memberOf(claim) ?? '' });

/** A retained PVC has no owner reference; its label names the member. */
const memberOf = (object: KubeObject): string | undefined => {
  const owner = controllerOf(object);
  if (owner) return owner.kind === etcdMembers.kind ? owner.name : undefined;
  return object.metadata.labels?.[COMPONENT_LABEL];
};

/** Ready members are reconciled last when the operator starts. */
export const isMemberReady = (pods: Store<Pod>, { metadata }: EtcdMember): boolean => {
  const pod = metadata.deletionTimestamp === undefined ? pods.get(keyOf({ metadata })) : undefined;
  return pod !== undefined && isPodReady(pod);
};
