/** Invariants about volumes: what is deleted with a PVC is lost. */
import { MEMBER_UID_ANNOTATION } from '../../src/api/names.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import type { Always, OnWrite, Scene } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { groupOf, isClusterDeleted, isDeleting, volumeOf } from './world/facts.ts';
import type { World } from './world/world.ts';

/** A PVC that is being deleted exists as long as its Pod: the operator deletes no such Pod while etcd counts on the data of its voter. */
export const keepsTerminatingPvcs: OnWrite = (scene, { verb, resource, ref }) => {
  const { world } = scene;
  if (verb !== 'delete' || resource.kind !== 'Pod' || isClusterDeleted(world)) return undefined;
  const pod = world.ground.find(pods, ref.name);
  const claim = pod && !isDeleting(pod) ? world.volumes.claimOf(pod) : undefined;
  if (!claim || !isDeleting(claim)) return undefined;
  // The operator may not have seen the deletion of the PVC yet.
  const isSeen =
    world.ground.timeline.date - Date.parse(claim.metadata.deletionTimestamp ?? '') > scene.history.windowMs;
  const id = world.volumes.of(claim.metadata.uid)?.disk?.id;
  const isVoter = id !== undefined && groupOf(world)?.members.get(id)?.isLearner === false;
  return isSeen && isVoter ? `Pod ${ref.name} is deleted, and with it the PVC and the data of a voter` : undefined;
};

/** I5: a data directory is never used under another member id. */
export const oneIdPerVolume: Always = ({ world }) => {
  const ids = idsOf(world);
  for (const { uid, disk } of world.volumes.all) {
    if (!disk) continue;
    const known = ids.get(uid);
    if (known !== undefined && known !== disk.id)
      return `volume ${uid} was member ${hexId(known)} and is ${hexId(disk.id)}`;
    ids.set(uid, disk.id);
  }
  return undefined;
};
const remembered = new WeakMap<World, Map<string, bigint>>();
const idsOf = (world: World): Map<string, bigint> => {
  const ids = remembered.get(world) ?? new Map<string, bigint>();
  remembered.set(world, ids);
  return ids;
};

/** A user deleted its member while another one ran with --force-new-cluster, which is believed when no other one responds. */
const isUsurpers = ({ world, history, usurpedUntil, deletedByPerson }: Scene, { metadata }: KubeObject): boolean =>
  usurpedUntil > world.ground.timeline.now &&
  history.lately(({ quorum: so, led }) => !so || !led) &&
  deletedByPerson.has(metadata.annotations?.[MEMBER_UID_ANNOTATION] ?? '');

/** I6: no volume of a listed member is deleted, unless the cluster is being deleted or a user deleted the volume. */
export const noVolumeOfAMember: Always = (scene) => {
  const { world } = scene;
  const group = groupOf(world);
  // Before clients could reach it, the cluster held no data of theirs.
  if (!group || isClusterDeleted(world) || scene.servedAt === undefined) return undefined;
  for (const claim of world.ground.api.peek(persistentVolumeClaims)) {
    const { uid = '', name = '' } = claim.metadata;
    if (!isDeleting(claim) || scene.deletedByPerson.has(uid)) continue;
    if (isUsurpers(scene, claim)) {
      scene.deletedByPerson.add(uid);
      continue;
    }
    const id = world.volumes.of(uid)?.disk?.id;
    if (id !== undefined && group.members.has(id)) return `PVC ${name} is deleted, and etcd still counts its member`;
  }
  return undefined;
};

/** The operator deletes no PVC with the last copy of the data, unless a user deletes the cluster. */
export const lastCopyIsKept: OnWrite = (scene, { verb, resource, ref }) => {
  const { world } = scene;
  if (verb !== 'delete' || resource.kind !== 'PersistentVolumeClaim' || isClusterDeleted(world)) return undefined;
  const group = groupOf(world);
  const disk = world.volumes.of(world.ground.find(persistentVolumeClaims, ref.name)?.metadata.uid)?.disk;
  if (!group || disk?.group !== group || scene.servedAt === undefined) return undefined;
  const others = voters(group).filter(({ id }) => id !== disk.id && volumeOf(world, group, id) !== undefined);
  return others.length > 0 ? undefined : `PVC ${ref.name} is deleted, which has the last copy of the data`;
};

/** With `deletionPolicy: Retain` no volume with data is deleted, unless a user deletes it. */
export const retainedVolumesAreKept: Always = ({ world, retains, servedAt, deletedByPerson }) => {
  if (!retains || servedAt === undefined) return undefined;
  const group = groupOf(world); // not the volume of a seed that never became the cluster
  const deleted = world.volumes.deleted.find(
    (volume) => volume.at > servedAt && volume.group === group && !deletedByPerson.has(volume.uid),
  );
  return deleted === undefined ? undefined : `PVC ${deleted.uid} is deleted in spite of deletionPolicy: Retain`;
};
