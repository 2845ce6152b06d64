/** What a world must look like after all faults have ended: as the spec asks, or in a named terminal state that is true. */
import type { Condition } from '../../src/api/conditions.ts';
import type { EtcdDefrag } from '../../src/api/etcd-defrag.ts';
import { etcdDefrags, QUARANTINE_LABEL } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { isFinished } from '../../src/domain/defragmentation.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { Resource } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods, services } from '../../src/kube/resources.ts';
import { credentialsUnrest, waitsForReplicas } from './credential-rest.ts';
import type { Scene } from './invariants.ts';
import { voters } from './model/etcd-group.ts';
import { outdatedPods, waitsInMemory } from './rollout-facts.ts';
import { groupOf, hasQuorum, intactVoters, isDeleting, membersOf, needed, readyVoters } from './world/facts.ts';
import type { World } from './world/world.ts';

const defrags: Resource<EtcdDefrag> = etcdDefrags;
type Wrong = string | undefined;
const UNNAMED = Symbol('no named end');
type Unnamed = typeof UNNAMED;
/** A deadline that has passed is reported by then. */
const REPORTED_MS = 10_000;

/** Why the world has not converged yet; undefined when it has. */
export function unrest({ world, retains }: Scene): Wrong {
  const { cluster, credentials } = world;
  if (credentials?.unrest !== undefined) return credentials.unrest;
  if (!cluster) return leftovers(world, retains);
  if (isDeleting(cluster)) return 'the cluster is still being deleted';
  const waiting = world.ground.api.peek(defrags).find((defrag) => !isFinished(defrag));
  if (waiting) return `EtcdDefrag ${waiting.metadata.name} is ${waiting.status?.phase}: ${waiting.status?.waitingFor}`;
  if (cluster.status?.defragmentation)
    return `${cluster.status.defragmentation.member} is recorded as being defragmented`;
  if (cluster.spec.maintenance?.autoRemedy?.enabled && cluster.spec.replicas !== 0) {
    const full = groupOf(world)?.state.alarms.all.find(({ alarm }) => alarm === 'noSpace');
    if (full) return `${hexId(full.memberId)} has the NOSPACE alarm: ${JSON.stringify(cluster.status?.remedy)}`;
  }
  const leaving = membersOf(world).filter(isDeleting);
  const conditionOf = (type: string): Condition | undefined => findCondition(cluster.status?.conditions, type);
  if (conditionOf('Available') === undefined) return 'the cluster has no Available condition';
  const { progressDeadline } = cluster.status ?? {};
  if (progressDeadline !== undefined && Date.parse(progressDeadline) > world.ground.timeline.date - REPORTED_MS)
    return 'a deadline is still pending';
  const named = namedEnd(world, conditionOf);
  if (named !== UNNAMED) return named;
  // A member that is to be removed from a paused cluster is removed after the resume: until then no etcd process runs.
  if (leaving.length > 0 && cluster.spec.replicas !== 0)
    return `${leaving.map((m) => m.metadata.name).join(', ')} cannot be removed`;
  return cluster.spec.replicas === 0 ? notPaused(world, conditionOf) : notAsAsked(world, conditionOf);
}

/** States in which the operator stops and needs a user: each must be true. */
function namedEnd(world: World, conditionOf: (type: string) => Condition | undefined): Wrong | Unnamed {
  const group = groupOf(world);
  const available = conditionOf('Available');
  const lost = ['AllMembersLost', 'NoReadableData', 'QuorumLost'];
  if (available?.status === 'False' && lost.includes(available.reason)) {
    if (!group) return `${available.reason}, and the cluster was never bootstrapped`;
    return intactVoters(world, group) < needed(group)
      ? undefined
      : `${available.reason}, although the data of a quorum is there`;
  }
  if (conditionOf('Progressing')?.reason === 'ReplacementsExhausted') return undefined;
  return UNNAMED;
}

function notAsAsked(world: World, conditionOf: (type: string) => Condition | undefined): Wrong {
  const { cluster } = world;
  const group = groupOf(world);
  const replicas = cluster?.spec.replicas ?? 3;
  if (!group)
    return `the cluster was never bootstrapped (${conditionOf('Available')?.reason}: ${conditionOf('Available')?.message})`;
  if (!hasQuorum(world, group))
    return `there is no quorum (${conditionOf('Available')?.reason}: ${conditionOf('Available')?.message})`;
  if (conditionOf('Available')?.status !== 'True')
    return `a quorum serves, and the status reports ${conditionOf('Available')?.reason}: ${conditionOf('Available')?.message}`;
  if (voters(group).length !== replicas || group.members.size !== replicas)
    return `etcd has ${voters(group).length} voters of ${group.members.size} members instead of ${replicas} (${conditionOf('Progressing')?.message})`;
  const ids = membersOf(world)
    .map((m) => m.status?.memberID ?? 'none')
    .toSorted();
  const real = [...group.members.keys()].map(hexId).toSorted();
  if (ids.join() !== real.join()) return `the members are ${ids.join()}, but etcd has ${real.join()}`;
  if (readyVoters(world, group) !== replicas) return `${readyVoters(world, group)} of ${replicas} members are ready`;
  if (cluster?.status?.readyMembers !== replicas) return `readyMembers is ${cluster?.status?.readyMembers}`;
  if (cluster.status.leader !== group.members.get(group.leader ?? 0n)?.name)
    return `${cluster.status.leader} is reported as the leader and is not`;
  if (world.writer.backends().length !== replicas)
    return `clients reach ${world.writer.backends().length} of ${replicas} members`;
  const going = world.ground.api.peek(persistentVolumeClaims).find(isDeleting);
  if (going) return `PVC ${going.metadata.name} is still being deleted, and its member is not replaced`;
  const credentials = credentialsUnrest(world);
  if (credentials !== undefined) return credentials;
  const outdated = outdatedPods(world);
  if (outdated.length > 0 && !waitsInMemory(world))
    return `${outdated.join(', ')} does not run with the spec (${conditionOf('Progressing')?.reason}: ${conditionOf('Progressing')?.message})`;
  const progress = conditionOf('Progressing');
  const waits = waitsForReplicas(world) ? ['RotatingCA', 'DeadlineExceeded'] : [];
  const ends = ['Reconciled', ...(waitsInMemory(world) ? ['UpdatePending'] : []), ...waits];
  return ends.includes(progress?.reason ?? '') ? undefined : `Progressing is ${progress?.reason}: ${progress?.message}`;
}

function notPaused(world: World, conditionOf: (type: string) => Condition | undefined): Wrong {
  const group = groupOf(world);
  const members = membersOf(world);
  const left = world.ground.api.peek(pods);
  if (left.length > 0) return `${left.length} Pods are left of a paused cluster`;
  if (conditionOf('Available')?.status === 'True') return 'a paused cluster is reported as available';
  const formed = world.cluster?.status?.clusterID !== undefined;
  return group && formed && members.length < voters(group).length ? 'a paused cluster has lost members' : undefined;
}

/** The operator did not see the deletion of the cluster, and its deletionPolicy is unknown; or it had replaced the member. */
const KEPT_FOR_A_DAY = ['policy-unknown', 'member-replaced'];

function leftovers(world: World, retains: boolean): Wrong {
  const kinds = [
    membersOf(world),
    world.ground.api.peek(pods),
    world.ground.api.peek(services),
    world.ground.api.peek(persistentVolumeClaims).filter(({ metadata }) => {
      const reason = metadata.labels?.[QUARANTINE_LABEL] ?? '';
      return retains ? reason === '' : !KEPT_FOR_A_DAY.includes(reason);
    }),
  ];
  const left = kinds.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  return left.length === 0 ? undefined : `the cluster is deleted, and there are still ${left.join(', ')}`;
}
