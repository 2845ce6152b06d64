/** What must never happen to certificates, CA bundles and the root password, whatever the faults. */

import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { trustName } from '../../src/api/names.ts';
import { ETCD_PORTS, loadsBundleAtStart } from '../../src/domain/certificate-requirements.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { controllerOf } from '../../src/domain/ownership.ts';
import type { Pod } from '../../src/gen/kube.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import type { Always, OnWrite, Scene } from './invariants.ts';
import type { ModelNode } from './model/etcd.ts';
import { accepts, hasExpired, refusesHandshake, trustEachOther } from './model/etcd-tls.ts';
import { groupOf, isDeleting, membersOf } from './world/facts.ts';
import { sourcesOf, textIn } from './world/mounts.ts';
import { CLUSTER, type World } from './world/world.ts';

/** Processes of the cluster that etcd still counts, also those that are cut off for a while. */
function runningMembers(world: World): readonly ModelNode[] {
  const group = world.credentials && groupOf(world);
  if (!group) return [];
  return world.etcd.nodes.filter(({ running, disk }) => running && disk?.group === group && group.members.has(disk.id));
}

/** Certificates have expired: what they protected is lost already. */
const isExpired = (world: World): boolean =>
  runningMembers(world).some(({ options: { tls } }) =>
    [tls?.client, tls?.peer].some((port) => port !== undefined && hasExpired(port)),
  );

/** A CA rotation never separates members: each accepts the certificate that every other one serves. */
export const peersTrustEachOther: Always = ({ world }) => {
  if (isExpired(world)) return undefined;
  const running = runningMembers(world);
  for (const [i, one] of running.entries()) {
    const other = running.slice(i + 1).find((node) => !trustEachOther(one, node));
    if (other) return `${one.name} and ${other.name} refuse each other's certificates`;
  }
  return undefined;
};

/**
 * A client that reads its files again is never refused: neither its certificate by a member, nor the certificate of a member by it.
 * Before the cluster has formed, the client Service has no endpoint, and a user may replace the CA for the next seed.
 */
export const clientsAreServed: Always = (scene) => {
  if (isExpired(scene.world) || scene.world.cluster?.status?.clusterID === undefined) scene.connected = false;
  const running = runningMembers(scene.world).filter(({ serving }) => serving);
  const tls = running.length > 0 ? scene.world.writer.material() : undefined;
  if (!tls) return undefined;
  const refused = running.flatMap(({ name, options }) => {
    const refusal = refusesHandshake(options.tls?.client, tls);
    return refusal ? [`${name}: ${refusal.message}`] : [];
  });
  if (refused.length === 0) scene.connected = true;
  return scene.connected && refused.length > 0 ? `a client gets no connection to ${refused.join(', ')}` : undefined;
};

/** Faults have cut the log of the cluster: changes that etcd acknowledged may be lost with it. */
const isCut = ({ world, dataExcused }: Scene): boolean => dataExcused || (groupOf(world)?.cuts.length ?? 0) > 0;

/** Once the status reports auth, it is on: no client is ever served again without a password. */
export const authStaysOn: Always = (scene) => {
  const { world } = scene;
  const group = groupOf(world);
  if (world.cluster?.status?.authEnabled !== true || !group || isCut(scene)) return undefined;
  return group.state.users.enabled ? undefined : 'the status has latched that auth is enabled, and it is off';
};

/** With auth enabled, one of the passwords in the two Secrets is that of root: otherwise no process can ever change anything in etcd. */
export const rootPasswordIsKnown: Always = (scene) => {
  const { credentials } = scene.world;
  const { users } = groupOf(scene.world)?.state ?? {};
  if (!credentials?.options.auth || !users?.enabled || isCut(scene)) return undefined;
  const known = credentials.passwords.some((password) => users.accepts({ user: 'root', password }));
  return known ? undefined : 'etcd accepts none of the passwords in the Secrets: the operator is locked out';
};

/** The Secrets with the CA bundles of Pods that start now. */
export const recordedBundles = ({ cluster }: World): readonly string[] =>
  ETCD_PORTS.flatMap((part) => {
    const digest = cluster?.status?.trust?.[part];
    return digest !== undefined && cluster && loadsBundleAtStart(cluster, part) ? trustName(CLUSTER, part, digest) : [];
  });

/** Whether the etcd of this Pod has loaded the recorded CA bundles. */
export function mountsRecordedBundles(world: World, name: string): boolean {
  const pod = world.ground.find(pods, name);
  const mounted = pod ? sourcesOf(pod).map(({ secret }) => secret) : [];
  return recordedBundles(world).every((bundle) => mounted.includes(bundle));
}

const secretOf = (world: World, name: string) => world.ground.find(secrets, name);

/** A member starts only with a CA bundle that verifies its peers, and a certificate that they verify. */
export const newPodsAreTrusted: OnWrite = ({ world }, { verb, resource, body }) => {
  if (verb !== 'create' || resource.kind !== 'Pod' || !world.credentials || isExpired(world)) return undefined;
  const pod = body as Pod;
  const fileAt = (path: string): string | undefined => {
    const source = sourcesOf(pod).find(({ files }) => Object.values(files).includes(path));
    const secret = source && secretOf(world, source.secret);
    return secret && textIn(secret, path.split('/')[1] ?? '');
  };
  const [bundle, leaf] = [fileAt('peer/ca.crt'), fileAt('peer/tls.crt')];
  if (bundle === undefined || leaf === undefined) return undefined; // it waits for its Secrets
  const peers = runningMembers(world).filter(({ name }) => name !== pod.metadata.name);
  const refused = peers.find(
    ({ options: { tls } }) => !accepts(bundle, tls?.peer?.leaf() ?? '') || !accepts(tls?.peer?.bundle ?? '', leaf),
  );
  return refused && `Pod ${pod.metadata.name} is created, and it and ${refused.name} will refuse each other`;
};

/** A CA bundle is deleted only when no member will start with it again: its Pod would wait for ever. */
export const mountedBundlesAreKept: OnWrite = ({ world }, { verb, resource, ref }) => {
  if (verb !== 'delete' || resource.kind !== 'Secret' || world.cluster === undefined) return undefined;
  const owners = new Set(membersOf(world).map(({ metadata }) => metadata.uid)); // the garbage collector deletes the Pods of all others
  const mounting = world.ground.api.peek(pods).find((pod) => {
    const stays = !isDeleting(pod) && owners.has(controllerOf(pod)?.uid);
    return stays && sourcesOf(pod).some(({ secret }) => secret === ref.name);
  });
  if (mounting) return `Secret ${ref.name} is deleted, and Pod ${mounting.metadata.name} mounts it`;
  return recordedBundles(world).includes(ref.name) ? `Secret ${ref.name} is deleted, and new Pods mount it` : undefined;
};

/** AuthEnabled=True only when etcd requires authentication. */
export const authConditionIsTrue: OnWrite = (scene, { verb, resource }, result) => {
  if (verb !== 'status' || resource.kind !== 'EtcdCluster' || !scene.world.credentials || isCut(scene))
    return undefined;
  const reported = findCondition((result as EtcdCluster | undefined)?.status?.conditions, 'AuthEnabled');
  const group = groupOf(scene.world);
  return reported?.status === 'True' && group && !group.state.users.enabled
    ? `AuthEnabled=True (${reported.reason}), and auth is off`
    : undefined;
};
