/** What a status must never report. */
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { CLUSTER_LABEL } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { isPodOver } from '../../src/domain/pod.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import type { OnWrite } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { groupOf, isDeleting, membersOf, volumeOf } from './world/facts.ts';
import { GRACE_MS } from './world/nodes.ts';
import type { Write } from './world/operator-ports.ts';

const statusIn = (write: Write, result: KubeObject | undefined): EtcdCluster['status'] | undefined =>
  write.verb === 'status' && write.resource.kind === 'EtcdCluster'
    ? (result as EtcdCluster | undefined)?.status
    : undefined;

/**
 * Available=True only when there was a quorum at some moment that the reconcile can have observed, or that Kubernetes
 * still reports: the Pods of a node that is cut off stay Ready until the node is NotReady.
 */
export const availableIsTrue: OnWrite = ({ history }, write, result) => {
  const reported = findCondition(statusIn(write, result)?.conditions, 'Available');
  return reported?.status !== 'True' || history.lately(({ quorum: so }) => so, GRACE_MS)
    ? undefined
    : `Available=True (${reported.reason}) although there has been no quorum for ${history.windowMs + GRACE_MS} ms`;
};

/** The advice to delete a cluster is given only when no voter has its data: on a volume that exists, or in memory. */
export const lostIsTrue: OnWrite = ({ world }, write, result) => {
  const reported = findCondition(statusIn(write, result)?.conditions, 'Available');
  const group = groupOf(world);
  if (reported?.reason !== 'AllMembersLost' || !group) return undefined;
  const left = voters(group).filter(({ id }) => volumeOf(world, group, id) !== undefined);
  return left.length === 0
    ? undefined
    : `AllMembersLost, although ${left.map(({ name }) => name).join(', ')} has its data`;
};

/** readyMembers counts voters that were ready. */
export const readyMembersAreReady: OnWrite = ({ history }, write, result) => {
  const reported = statusIn(write, result)?.readyMembers ?? 0;
  return history.lately(({ ready }) => ready >= reported) || reported === 0
    ? undefined
    : `readyMembers is ${reported}, and there were never as many`;
};

/** The reported leader is or was the leader. */
export const leaderIsOrWas: OnWrite = ({ world, history }, write, result) => {
  const status = statusIn(write, result);
  const id = status?.members?.find(({ name }) => name === status.leader)?.id;
  if (id === undefined || history.everLed(BigInt(`0x${id}`))) return undefined;
  return groupOf(world) ? `${status?.leader} (${id}) is reported as the leader and never was` : undefined;
};

/** Reconciled only when there were as many members as the spec asks; Degraded reports whether they are healthy. */
export const reconciledIsTrue: OnWrite = ({ world, history }, write, result) => {
  const cluster = statusIn(write, result) && (result as EtcdCluster);
  const reported = findCondition(cluster?.status?.conditions, 'Progressing');
  const current = reported?.observedGeneration === world.cluster?.metadata.generation;
  if (!cluster || reported?.reason !== 'Reconciled' || !current) return undefined;
  const { replicas = 3 } = cluster.spec;
  const so = history.lately((m) =>
    replicas === 0 ? m.ready === 0 : m.voters === replicas && m.learners === 0 && m.objects === replicas,
  );
  return so ? undefined : `Reconciled, although there were never ${replicas} members lately`;
};

/** A PVC of a voter that a user deletes is reported: its data exists only as long as the Pod, which a user may delete next. */
export const terminatingPvcIsReported: OnWrite = ({ world, history }, write, result) => {
  const reported = findCondition(statusIn(write, result)?.conditions, 'Degraded');
  const group = groupOf(world);
  if (reported?.status !== 'False' || reported.reason === 'Paused' || !group) return undefined;
  const { date } = world.ground.timeline;
  const unseen = world.ground.api.peek(pods).find((pod) => {
    const claim = isDeleting(pod) || isPodOver(pod) ? undefined : world.volumes.claimOf(pod);
    const since = Date.parse(claim?.metadata.deletionTimestamp ?? '');
    const isKept = membersOf(world).some((m) => m.metadata.name === pod.metadata.name && !isDeleting(m));
    const isVoter = isKept && voters(group).some(({ name }) => name === pod.metadata.name);
    return isVoter && claim?.metadata.labels?.[CLUSTER_LABEL] !== undefined && date - since > history.windowMs;
  });
  return unseen && `Degraded=False (${reported.reason}), although the PVC of ${unseen.metadata.name} is being deleted`;
};
