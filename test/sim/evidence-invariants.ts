/** Invariants about members that are replaced: evidence errs, and data is destroyed for it. */
import { EVIDENCE } from '../../src/api/etcd-member.ts';
import { volumeClaimName } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import type { OnWrite } from './invariants.ts';
import { canServe, groupOf, isClusterDeleted, membersOf } from './world/facts.ts';
import { FLAGS } from './world/operator.ts';
import type { World } from './world/world.ts';

/** Failure evidence can be wrong: no member is replaced for what its etcd logged about its data while that data would start. */
const JUDGED: readonly string[] = [EVIDENCE.dataInvalid, EVIDENCE.volumeFull, EVIDENCE.crashLooping];
const DISPROVABLE: readonly string[] = [...JUDGED, EVIDENCE.dataLost, EVIDENCE.volumeLost];
export const intactDataIsKept: OnWrite = ({ world, usurpedUntil }, { verb, resource, ref }) => {
  if (verb !== 'delete' || resource.kind !== 'EtcdMember' || usurpedUntil > world.ground.timeline.now) return undefined;
  const member = membersOf(world).find(({ metadata }) => metadata.name === ref.name);
  const reason = findCondition(member?.status?.conditions, 'Ready')?.reason ?? '';
  const group = groupOf(world);
  const volume = world.volumes.all.find(({ claim, destroyed }) => claim === volumeClaimName(ref.name) && !destroyed);
  if (!DISPROVABLE.includes(reason) || !group || !volume?.disk || !canServe(world, volume)) return undefined;
  return group.members.has(volume.disk.id)
    ? `EtcdMember ${ref.name} (${reason}) is deleted, and its data is in order`
    : undefined;
};

/** A node may come back: no member is replaced before its node was NotReady for as long as promised, whatever clocks say. */
export const nodesHaveTheirGrace: OnWrite = ({ world }, { verb, resource, ref }) => {
  if (verb !== 'delete' || resource.kind !== 'EtcdMember') return undefined;
  const member = membersOf(world).find(({ metadata }) => metadata.name === ref.name);
  if (findCondition(member?.status?.conditions, 'Ready')?.reason !== EVIDENCE.nodeLost) return undefined;
  const volume = world.volumes.all.find(({ claim, destroyed }) => claim === volumeClaimName(ref.name) && !destroyed);
  const name = world.ground.find(pods, ref.name)?.spec?.nodeName ?? volume?.node;
  const node = world.nodes.get(name);
  const since = world.nodes.notReadySince(name);
  if (!node || node.state === 'gone' || node.outOfService || since === undefined) return undefined;
  const seconds = Math.ceil((world.ground.timeline.date - since) / 1_000);
  return seconds >= FLAGS.nodeLostAfterSeconds
    ? undefined
    : `EtcdMember ${ref.name} is deleted after its node was NotReady for ${seconds} s`;
};

/** The volume of a member that was replaced on a judgement is kept for a day. */
const DAY_MS = 24 * 60 * 60_000;
export const replacedVolumesAreKept: OnWrite = (scene, { verb, resource, ref }) => {
  const { world, replaced } = scene;
  if (verb !== 'delete' || isClusterDeleted(world)) return undefined;
  const { now } = world.ground.timeline;
  if (resource.kind === 'PersistentVolumeClaim') {
    const since = replaced.get(world.ground.find(persistentVolumeClaims, ref.name)?.metadata.uid ?? '');
    return since !== undefined && now - since < DAY_MS
      ? `PVC ${ref.name} is deleted ${now - since} ms after its member was replaced`
      : undefined;
  }
  const member = resource.kind === 'EtcdMember' && membersOf(world).find(({ metadata }) => metadata.name === ref.name);
  const pvc = world.ground.find(persistentVolumeClaims, volumeClaimName(ref.name));
  const reason = (member && findCondition(member.status?.conditions, 'Ready')?.reason) || '';
  const isJudged = JUDGED.includes(reason) || (reason === EVIDENCE.nodeLost && isOnPresentNode(world, ref.name));
  if (pvc && scene.servedAt !== undefined && isJudged) replaced.set(pvc.metadata.uid ?? '', now);
  return undefined;
};
const isOnPresentNode = (world: World, member: string): boolean => {
  const node = world.nodes.get(world.ground.find(pods, member)?.spec?.nodeName);
  return node !== undefined && node.state !== 'gone' && !node.outOfService;
};
