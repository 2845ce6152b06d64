/** What Pods were built from, compared with what users and members ask for. */
import { targetOf } from '../../src/api/defaults.ts';
import { lackedFields } from '../../src/controllers/cluster/rollout/template.ts';
import { isBeforeRestart, stampIn, unstampedFields } from '../../src/domain/pod-template.ts';
import { pods } from '../../src/kube/resources.ts';
import { membersOf } from './world/facts.ts';
import type { World } from './world/world.ts';

const podOf = (world: World, name: string | undefined) => world.ground.find(pods, name ?? '');

/** The Pod has the template of its EtcdMember, and was created after the last restart that a user requested. Pods of an earlier operator do not tell. */
export function isBuiltFromItsMember(world: World, name: string): boolean {
  const stamp = stampIn(podOf(world, name)?.metadata.annotations);
  const member = membersOf(world).find((m) => m.metadata.name === name);
  return !stamp || !member || (unstampedFields(stamp, member).length === 0 && !isBeforeRestart(stamp, member));
}

/** Members whose Pod was not built from the spec of the cluster, by what their Pods and EtcdMembers say. */
export function outdatedPods(world: World): readonly string[] {
  const { cluster } = world;
  if (!cluster) return [];
  const target = targetOf(cluster.spec, cluster.status);
  return membersOf(world).flatMap((object) => {
    const stamp = stampIn(podOf(world, object.metadata.name)?.metadata.annotations);
    const pod = { is: 'present', ready: true, maxLearners: 1, ...(stamp && { stamp }) } as const;
    const fields = lackedFields({ object, pod }, target);
    return fields.length === 0 ? [] : [`${object.metadata.name} (${fields.join(', ')})`];
  });
}

/** Members in memory are restarted only where at least three have the data. */
export const waitsInMemory = (world: World): boolean =>
  world.cluster?.spec.storage?.medium === 'Memory' && (world.cluster.spec.replicas ?? 3) < 3;
