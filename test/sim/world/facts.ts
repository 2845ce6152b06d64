/** The true state of the world, which no process in it can observe. */
import type { EtcdMember } from '../../../src/api/etcd-member.ts';
import { etcdMembers, MEMBER_UID_ANNOTATION, QUARANTINE_LABEL } from '../../../src/api/names.ts';
import { isPodOver, isPodReady } from '../../../src/domain/pod.ts';
import { hexId } from '../../../src/etcd/ids.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../../src/kube/resources.ts';
import { type Group, quorum, voters } from '../model/etcd-group.ts';
import { isHealthy, type Run } from './pod-run.ts';
import type { Volume } from './volumes.ts';
import type { World } from './world.ts';

const members: Resource<EtcdMember> = etcdMembers;
export const membersOf = (world: World): readonly EtcdMember[] => world.ground.api.peek(members);
export const isDeleting = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;
export const isClusterDeleted = ({ cluster }: World): boolean => !cluster || isDeleting(cluster);

/**
 * The etcd cluster of the current EtcdCluster: the latest one that was bootstrapped with its token. Once an ID is recorded, only of
 * that ID: a seed that was deleted before may run on an unreachable node, and bootstrap late.
 */
export function groupOf(world: World): Group | undefined {
  const { metadata, status } = world.cluster ?? {};
  if (metadata?.uid === undefined) return undefined;
  // That of a cluster which etcd-migrate has adopted is older than its uid.
  const isOurs = (token: string): boolean => token.endsWith(metadata.uid ?? '') || token === status?.clusterToken;
  const ours = world.kubelet.bootstraps.filter(({ token }) => isOurs(token));
  const recorded = ours.findLast(({ group }) => hexId(group.clusterId) === status?.clusterID);
  return (recorded ?? ours.at(-1))?.group;
}

export const runsOf = (world: World, group: Group): readonly Run[] =>
  [...world.kubelet.runs.values()].filter(({ process }) => process?.disk?.group === group);

export const isReachable = (world: World, group: Group, id: bigint): boolean =>
  world.etcd.nodes.some(
    ({ running, isolated, disk }) => running && !isolated && disk?.group === group && disk.id === id,
  );

export const reachableVoters = (world: World, group: Group): number =>
  voters(group).filter(({ id }) => isReachable(world, group, id)).length;

export const needed = (group: Group): number => quorum(voters(group).length);

export const hasQuorum = (world: World, group: Group): boolean =>
  group.leader !== undefined && reachableVoters(world, group) >= needed(group);

/** The data directory of a member, if there is one that etcd can start from, or could if its node came back. */
export const volumeOf = (world: World, group: Group, id: bigint): Volume | undefined =>
  world.volumes.all.find(({ disk, destroyed }) => !destroyed && disk?.group === group && disk.id === id);

/** etcd would start on it. */
export function canServe(world: World, { trouble, node, claim, disk }: Volume): boolean {
  const object = claim === undefined ? undefined : world.ground.find(persistentVolumeClaims, claim);
  // It is deleted with the Pod that uses it, or retained for a user, and no member uses it again.
  const isLeft = object !== undefined && ((isDeleting(object) && !isInUse(world, claim)) || isKept(world, object));
  return trouble === 'none' && disk?.corrupted === undefined && !isLeft && world.nodes.get(node)?.state !== 'gone';
}

/** A member that is not deleted after all gets its PVC back. */
const isKept = (world: World, { metadata: { labels, annotations } }: KubeObject): boolean =>
  labels?.[QUARANTINE_LABEL] !== undefined &&
  !membersOf(world).some((m) => m.metadata.uid === annotations?.[MEMBER_UID_ANNOTATION] && !isDeleting(m));

/** A Pod that nothing but the operator would delete now keeps the PVC from being deleted. */
const isInUse = (world: World, claim: string | undefined): boolean =>
  world.ground.api
    .peek(pods)
    .some(
      (pod) =>
        world.volumes.claimOf(pod)?.metadata.name === claim &&
        !isDeleting(pod) &&
        !isPodOver(pod) &&
        world.nodes.isUp(pod.spec?.nodeName),
    );

/** Voters whose data could still be used. */
export const intactVoters = (world: World, group: Group): number =>
  voters(group).filter(({ id }) => {
    const volume = volumeOf(world, group, id);
    return volume !== undefined && canServe(world, volume);
  }).length;

/** Voters that serve, or whose Pods are reported as ready: the status lags behind a node that has just failed. */
export const readyVoters = (world: World, group: Group): number => {
  const ready = world.ground.api.peek(pods).filter(isPodReady);
  return voters(group).filter(({ id, name }) => {
    const serves = world.etcd.nodes.some(
      (node) => node.disk?.group === group && node.disk.id === id && isHealthy(node),
    );
    return serves || ready.some(({ metadata }) => metadata.name === name);
  }).length;
};
