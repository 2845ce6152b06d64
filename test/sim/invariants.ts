/**
 * What must never happen, whatever the faults. Each is a function that returns a sentence when it is violated. Faults may
 * break a cluster; an invariant is about what the operator did or reported.
 */
import { ROLE_LABEL, ROLE_VOTER } from '../../src/api/names.ts';
import type { Result } from '../../src/etcd/errors.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import {
  authConditionIsTrue,
  authStaysOn,
  clientsAreServed,
  mountedBundlesAreKept,
  mountsRecordedBundles,
  newPodsAreTrusted,
  peersTrustEachOther,
  rootPasswordIsKnown,
} from './credential-invariants.ts';
import { DEFRAGMENTATION } from './defrag-invariants.ts';
import { intactDataIsKept, nodesHaveTheirGrace, replacedVolumesAreKept } from './evidence-invariants.ts';
import { noMoreThanWanted } from './growth-invariants.ts';
import { type Group, quorum, voters } from './model/etcd-group.ts';
import { blockedEditsAreNotApplied, foreignIsLeftAlone, successorsCouldRun } from './object-invariants.ts';
import { isBuiltFromItsMember } from './rollout-facts.ts';
import { oneVoterAway } from './rollout-invariants.ts';
import { SPACE } from './space-invariants.ts';
import {
  availableIsTrue,
  leaderIsOrWas,
  lostIsTrue,
  readyMembersAreReady,
  reconciledIsTrue,
  terminatingPvcIsReported,
} from './status-invariants.ts';
import {
  keepsTerminatingPvcs,
  lastCopyIsKept,
  noVolumeOfAMember,
  oneIdPerVolume,
  retainedVolumesAreKept,
} from './volume-invariants.ts';
import {
  groupOf,
  hasQuorum,
  isClusterDeleted,
  isDeleting,
  isReachable,
  membersOf,
  needed,
  reachableVoters,
  volumeOf,
} from './world/facts.ts';
import type { History } from './world/history.ts';
import type { MembershipCall, Write } from './world/operator-ports.ts';
import type { World } from './world/world.ts';

export interface Scene {
  readonly world: World;
  readonly history: History;
  /** Since when clients could reach the cluster: from then on it may hold data that a client relies on. */
  servedAt: number | undefined;
  /** Faults destroyed so much storage that data loss is not the operator's fault. */
  dataExcused: boolean;
  /** The spec says `deletionPolicy: Retain`. */
  readonly retains: boolean;
  /** The spec was edited beyond its replicas. */
  edited: boolean;
  /** PVCs and members that a user deleted. */
  readonly deletedByPerson: Set<string>;
  /** By uid, when the member of a PVC was replaced on a judgement. */
  readonly replaced: Map<string, number>;
  /** What was created for a cluster after its deletion, and how often. */
  readonly remade: Map<string, number>;
  /** Until when the operator may believe a member that was started with --force-new-cluster. */
  usurpedUntil: number;
  /** A client with the certificates of its Pod has reached all members. */
  connected: boolean;
  /** Membership calls that were sent and have no response yet. */
  readonly inFlight: Set<MembershipCall>;
}

type Broken = string | undefined;
export type Always = (scene: Scene) => Broken;
export type OnWrite = (scene: Scene, write: Write, result?: KubeObject) => Broken;
export type OnChange = (scene: Scene, call: MembershipCall, answer?: Result<unknown>) => Broken;

const isPausing = ({ world }: Scene): boolean =>
  world.cluster?.spec.replicas === 0 || world.cluster?.status?.observed?.replicas === 0;

/** I1: all members that ever responded for a cluster have one cluster id. */
export const oneClusterId: Always = ({ world }) => {
  const latched = world.cluster?.status?.clusterID;
  const group = groupOf(world);
  return latched === undefined || !group || hexId(group.clusterId) === latched
    ? undefined
    : `the members answer for ${hexId(group.clusterId)}, but the status says ${latched}`;
};

/**
 * I2: a cluster that clients could reach is never bootstrapped again: an empty cluster would replace it. A seed that was deleted
 * before that has another cluster ID, and its node may not know yet that it is deleted.
 */
export const oneBootstrap: Always = ({ world, servedAt }) => {
  const uid = world.cluster?.metadata.uid;
  if (uid === undefined || servedAt === undefined) return undefined;
  const isMember = (name: string): boolean => membersOf(world).some((m) => m.metadata.name === name && !isDeleting(m));
  const again = world.kubelet.bootstraps.some(
    ({ token, at, group, member }) =>
      token.endsWith(uid) && at > servedAt && (group === groupOf(world) || isMember(member)),
  );
  return again ? 'the cluster was bootstrapped a second time' : undefined;
};

/** A restored cluster is never bootstrapped without its snapshot: it would be empty and look healthy. */
export const restoresItsSnapshot: Always = ({ world }) => {
  const { spec, metadata } = world.cluster ?? {};
  if (!spec?.bootstrap?.restore || metadata?.uid === undefined) return undefined;
  const empty = world.kubelet.bootstraps.find(
    ({ token, restored }) => token.endsWith(metadata.uid ?? '?') && !restored,
  );
  return empty ? `${empty.member} bootstrapped the cluster without the data of the snapshot` : undefined;
};

/** I2: never two EtcdMembers are the seed of a cluster. */
export const oneSeed: Always = ({ world }) => {
  const seeds = membersOf(world).filter((m) => m.spec.bootstrap === true && !isDeleting(m));
  return seeds.length > 1 ? `two seeds: ${seeds.map((m) => m.metadata.name).join(', ')}` : undefined;
};

/** These change no membership, and a defragmentation stays in flight for minutes. */
const MAINTENANCE: readonly string[] = ['defragment', 'compact', 'disarm'];

/** I3: an operator never has more than one membership change in flight. */
export const oneChangeAtATime: OnChange = (scene, call) => {
  const isOther = (other: MembershipCall): boolean =>
    other.by === call.by && other !== call && !MAINTENANCE.includes(other.method);
  const others = MAINTENANCE.includes(call.method) ? [] : [...scene.inFlight].filter(isOther);
  return others.length > 0 ? `${call.method} was sent while ${others[0]?.method} was in flight` : undefined;
};

/** I4: a membership change by the operator leaves a quorum of voters that are reachable, or were lately. */
export const quorumAfterChange: OnChange = ({ world, history }, call, answer) => {
  const group = groupOf(world);
  if (!answer?.ok || !group || !['add', 'promote', 'remove'].includes(call.method)) return undefined;
  const alive = voters(group).filter(
    ({ id }) => isReachable(world, group, id) || history.wasReachableLately(id),
  ).length;
  return alive >= needed(group)
    ? undefined
    : `after ${call.method}, ${alive} of ${voters(group).length} voters can be reached`;
};

/** I4: the operator deletes no Pod that the quorum needs, unless the quorum was lost before. */
export const quorumAfterPodDeletion: OnWrite = (scene, { verb, resource, ref }) => {
  const { world } = scene;
  if (
    (verb !== 'delete' && verb !== 'evict') ||
    resource.kind !== 'Pod' ||
    isClusterDeleted(scene.world) ||
    isPausing(scene)
  )
    return undefined;
  const group = groupOf(world);
  const run = [...world.kubelet.runs.values()].find(({ name }) => name === ref.name);
  const id = run?.process?.disk?.id;
  if (!group || id === undefined || !hasQuorum(world, group) || !isReachable(world, group, id)) return undefined;
  if (group.members.get(id)?.isLearner !== false) return undefined;
  const busy = world.etcd.nodes.filter((node) => node.disk?.group === group && node.defragmentsUntil > 0);
  const left = reachableVoters(world, group) - 1 - busy.filter((node) => node.disk?.id !== id).length;
  // Of two voters neither can be spared: where both refuse new members, one is restarted anyway, and that is recorded first.
  const recorded = world.cluster?.status?.refusedChange?.restarts.some(({ pod }) => pod === run?.uid) === true;
  const isRotation = !mountsRecordedBundles(world, ref.name); // etcd loads a CA bundle only when it starts, also where no voter can be spared
  const isUpdate = !isBuiltFromItsMember(world, ref.name); // so it is with an edit
  const all = voters(group).length;
  return left >= needed(group) ||
    (recorded && all === 2 && left === 1) ||
    ((isRotation || isUpdate) && all <= 2 && left === all - 1)
    ? undefined
    : `Pod ${ref.name} is deleted, and ${left} of ${voters(group).length} voters are left`;
};

/** A Pod whose memory holds the only copy of a voter's data is not deleted for a restart: it would come back empty. */
export const keepsDataInMemory: OnWrite = (scene, { verb, resource, ref }) => {
  const { world } = scene;
  if (verb !== 'delete' || resource.kind !== 'Pod' || isClusterDeleted(scene.world) || isPausing(scene))
    return undefined;
  const run = [...world.kubelet.runs.values()].find(({ name }) => name === ref.name);
  const id = run?.volume.claim === undefined ? run?.process?.disk?.id : undefined;
  const group = groupOf(world);
  return id !== undefined && group && isReachable(world, group, id) && group.members.get(id)?.isLearner === false
    ? `Pod ${ref.name} is deleted with the data in its memory`
    : undefined;
};

/** One disruption at a time: no voter is removed while another one is not serving, unless it is the one that is removed. */
export const oneDisruption: OnChange = ({ world, history }, call) => {
  const group = groupOf(world);
  if (!group || call.method !== 'remove') return undefined;
  const [id] = call.args as readonly [bigint];
  if (group.members.get(id)?.isLearner !== false) return undefined;
  const rest = voters(group).filter((v) => v.id !== id);
  const alive = rest.filter((v) => history.wasReachableLately(v.id)).length;
  return rest.length === 0 || alive >= quorum(rest.length)
    ? undefined
    : `a voter is removed while ${alive} of the other ${rest.length} serve`;
};

/** No voter is given up while the others are no quorum by themselves: it may hold the only copy of acknowledged writes. */
export const sparedWhenDeleted: OnWrite = (scene, { verb, resource, ref }) => {
  const { world, history } = scene;
  const group = groupOf(world);
  if (verb !== 'delete' || resource.kind !== 'EtcdMember' || !group || isClusterDeleted(scene.world)) return undefined;
  if (scene.servedAt === undefined) return undefined;
  const member = voters(group).find(({ name }) => name === ref.name);
  if (!member) return undefined;
  const rest = voters(group).filter((v) => v !== member);
  const alive = rest.filter((v) => history.wasReachableLately(v.id)).length;
  return alive >= quorum(rest.length) && alive > 0
    ? undefined
    : `EtcdMember ${ref.name} is deleted while ${alive} of the other ${rest.length} voters serve`;
};

/** A member list that is not linearizable may be long outdated: nothing is decided by it. */
export const listsAreTheQuorums: OnChange = (_scene, { method, args }) =>
  method === 'list' && (args[0] as { readonly linearizable: boolean }).linearizable !== true
    ? 'a member list is read without linearizable'
    : undefined;

/** An operator whose cache has not seen the deletion of a cluster may finish one creation, and never repeats it. */
const MADE_UNAWARES = 2;
export const goneStaysGone: OnWrite = ({ world, remade }, { verb, resource, body }) => {
  if (verb !== 'create') return undefined;
  const [owner] = (body as KubeObject).metadata.ownerReferences ?? [];
  if (owner?.kind !== 'EtcdCluster' || world.cluster?.metadata.uid === owner.uid) return undefined;
  const what = `${resource.kind} ${(body as KubeObject).metadata.name} for ${owner.uid}`;
  const times = (remade.get(what) ?? 0) + 1;
  remade.set(what, times);
  return times > MADE_UNAWARES ? `${what}, a deleted cluster, is created ${times} times` : undefined;
};

/** Never the last good copy: the operator removes no member when no other voter has the data. */
export const notTheLastCopy: OnChange = ({ world }, call, answer) => {
  const group = groupOf(world);
  if (!answer?.ok || !group || call.method !== 'remove') return undefined;
  const copies = voters(group).filter(({ id }) => volumeOf(world, group, id) !== undefined);
  return copies.length > 0 ? undefined : 'the last copy of the data was removed';
};

/** The leadership goes to a voter that serves, or did lately: towards any other, etcd drops writes until it gives up. */
export const transfereeServes: OnChange = ({ world, history, usurpedUntil }, { method, args, ask }, answer) => {
  if (method !== 'moveLeader' || !groupOf(world)) return undefined;
  if (usurpedUntil > world.ground.timeline.now) return undefined; // it may be a voter of the other cluster
  const [to] = args as readonly [bigint];
  const run = [...world.kubelet.runs.values()].find(({ ip }) => ask.endpoint.includes(`//${ip}:`));
  const stops = run?.state === 'stopping' || world.nodes.get(run?.node)?.cordoned === true;
  if (answer?.ok && stops) world.ground.count('leadership handed over');
  return history.wasReachableLately(to) ? undefined : `the leadership is transferred to ${hexId(to)}, which is down`;
};

/** I8: acknowledged writes survive, as long as faults destroyed fewer than a quorum of the disks. */
export const acknowledgedWritesSurvive: Always = (scene) => {
  if (scene.dataExcused || isClusterDeleted(scene.world)) return undefined;
  const group = groupOf(scene.world);
  if (group?.leader === undefined) return undefined;
  const last = scene.world.writer.acknowledged.at(-1);
  if (!last || !belongs(scene, last.group)) return undefined;
  const cut = last.group.cuts.slice(last.cuts).some((index) => index < last.index);
  return last.group === group && !cut ? undefined : `${last.key} was acknowledged and is lost`;
};
const belongs = ({ world }: Scene, group: Group): boolean =>
  world.kubelet.bootstraps.some((b) => b.group === group && b.token.endsWith(world.cluster?.metadata.uid ?? '?'));

/** The client Service's label is only on members that are voters, or were lately. */
export const labelOnVotersOnly: OnWrite = ({ world, history }, write, result) => {
  if (write.resource.kind !== 'Pod' || result?.metadata.labels?.[ROLE_LABEL] !== ROLE_VOTER) return undefined;
  if (write.verb === 'delete' || write.verb === 'evict') return undefined;
  const group = groupOf(world);
  const name = result.metadata.name;
  const entry = group && [...group.members.values()].find((m) => m.name === name);
  if (entry && !entry.isLearner) return undefined;
  return history.lately((m) => m.voters > 0) && !entry ? undefined : `Pod ${name} is labelled as a voter and is none`;
};

/** No member gets an owner that does not exist: the garbage collector would delete the member and its volume. */
export const ownersExist: OnWrite = ({ world, remade }, { verb, resource, ref, body }) => {
  if (verb !== 'patch' || resource.kind !== 'EtcdMember') return undefined;
  const owner = (body as KubeObject).metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (!owner || world.cluster?.metadata.uid === owner.uid) return undefined;
  const times = (remade.get(`owner of ${ref.name}`) ?? 0) + 1;
  remade.set(`owner of ${ref.name}`, times);
  return times > MADE_UNAWARES
    ? `${ref.name} is adopted for ${owner.uid}, which does not exist, ${times} times`
    : undefined;
};

/** A process that does not hold the Lease writes nothing and changes no membership. */
export const onlyTheHolderActs: OnChange = ({ world }, call) =>
  world.lease.mayWrite(call.by) ? undefined : `${call.by.name} sends ${call.method} without the Lease`;

export const ALWAYS = {
  oneClusterId,
  oneBootstrap,
  beginsWithItsSnapshot: restoresItsSnapshot,
  oneSeed,
  oneIdPerVolume,
  noVolumeOfAMember,
  retainedVolumesStay: retainedVolumesAreKept,
  acknowledgedWritesSurvive,
  peersTrustEachOther,
  clientsAreServed,
  authStaysOn,
  rootPasswordIsKnown,
};
export const BEFORE_WRITE = {
  quorumAfterPodDeletion,
  oneVoterAway,
  keepsDataInMemory,
  keepsTerminatingPvcs,
  lastCopyIsKept,
  replacedVolumesAreKept,
  foreignIsLeftAlone,
  sparedWhenDeleted,
  intactDataIsKept,
  nodesHaveTheirGrace,
  goneStaysGone,
  blockedEditsAreNotApplied,
  successorsCouldRun,
  ownersExist,
  newPodsAreTrusted,
  mountedBundlesAreKept,
  ...DEFRAGMENTATION.beforeWrite,
};
export const ON_QUESTION = { listsAreTheQuorums };
export const AFTER_WRITE = {
  labelOnVotersOnly,
  availableIsTrue,
  lostIsTrue,
  readyMembersAreReady,
  leaderIsOrWas,
  reconciledIsTrue,
  terminatingPvcIsReported,
  authConditionIsTrue,
};
export const BEFORE_CHANGE = {
  oneChangeAtATime,
  onlyTheHolderActs,
  oneDisruption,
  ...DEFRAGMENTATION.beforeChange,
  ...SPACE.beforeChange,
};
export const AFTER_CHANGE = {
  quorumAfterChange,
  noMoreThanWanted,
  notTheLastCopy,
  transfereeServes,
  ...DEFRAGMENTATION.afterChange,
  ...SPACE.afterChange,
};
