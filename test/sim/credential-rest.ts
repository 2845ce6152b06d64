/** What certificates, CA bundles and the root password must be like after all faults have ended. */

import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { clientCAName, type EtcdPortName, keptPasswordName, peerCAName } from '../../src/api/names.ts';
import { certificatesOf, ETCD_PORTS, portOf } from '../../src/domain/certificate-requirements.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { recordedBundles } from './credential-invariants.ts';
import { accepts } from './model/etcd-tls.ts';
import { groupOf } from './world/facts.ts';
import { sourcesOf, textIn } from './world/mounts.ts';
import { CLUSTER, type World } from './world/world.ts';

type Wrong = string | undefined;

/** Data in memory would be lost in a restart: with fewer members than this, the operator asks for more instead. */
const MIN_VOTERS_IN_MEMORY = 3;
export const waitsForReplicas = ({ cluster }: World): boolean =>
  findCondition(cluster?.status?.conditions, 'CertificatesValid')?.message.includes('CA rotation in progress') ===
    true &&
  cluster?.spec.storage?.medium === 'Memory' &&
  (cluster.spec.replicas ?? 3) < MIN_VOTERS_IN_MEMORY;

export function credentialsUnrest(world: World): Wrong {
  const { cluster, credentials } = world;
  if (!cluster || !credentials) return undefined;
  const degraded = findCondition(cluster.status?.conditions, 'Degraded');
  if (degraded?.status === 'True') return `Degraded is True (${degraded.reason}: ${degraded.message})`; // the operator may be locked out
  if (waitsForReplicas(world)) return authUnrest(world, cluster);
  const valid = findCondition(cluster.status?.conditions, 'CertificatesValid');
  if (valid?.status !== 'True' || valid.reason !== 'Valid')
    return `CertificatesValid is ${valid?.status} (${valid?.reason}: ${valid?.message})`;
  const ofPorts = ETCD_PORTS.flatMap((part) => portUnrest(world, cluster, part) ?? []);
  return bundlesUnrest(world, cluster) ?? ofPorts[0] ?? authUnrest(world, cluster);
}

/**
 * Of all CA bundles that members could have loaded only the recorded ones exist, and every Pod mounts them. One that was written and never
 * recorded, because a user changed the CA again at that moment, stays until its cluster is deleted.
 */
function bundlesUnrest(world: World, cluster: EtcdCluster): Wrong {
  const { trust } = cluster.status ?? {};
  const recorded = recordedBundles(world);
  const isBundle = (name: string | undefined): boolean => name?.includes('-trust-') === true;
  const present = world.ground.api
    .peek(secrets)
    .flatMap(({ metadata: { name = '' } }) => (world.credentials?.recorded.has(name) ? [name] : []));
  if (present.toSorted().join() !== recorded.toSorted().join())
    return `the CA bundles are ${present.join()}, and ${recorded.join()} are recorded`;
  if ((trust?.kept ?? []).length > 0) return `previous CA bundles are kept: ${trust?.kept?.join()}`;
  for (const pod of world.ground.api.peek(pods)) {
    const mounted = sourcesOf(pod).flatMap(({ secret }) => (isBundle(secret) ? [secret] : []));
    if (mounted.toSorted().join() !== recorded.toSorted().join())
      return `Pod ${pod.metadata.name} mounts the CA bundles ${mounted.join()}, and ${recorded.join()} are recorded`;
  }
  return undefined;
}

/** Members trust the target CA only, and serve what is in their Secret, signed by it. */
function portUnrest(world: World, cluster: EtcdCluster, part: EtcdPortName): Wrong {
  const need = certificatesOf(cluster).find(({ role }) => portOf(role) === part && role !== 'operator');
  if (!need) return undefined;
  const secret = (name: string) => world.ground.find(secrets, name);
  const managed = secret(part === 'client' ? clientCAName(CLUSTER) : peerCAName(CLUSTER));
  if (managed?.data?.['next.crt'] !== undefined) return `the CA of the ${part} port has a successor`;
  const target = need.from === 'operator' ? textIn(managed, 'tls.crt') : textIn(secret(need.secret), 'ca.crt');
  for (const { name, running, options } of world.etcd.nodes) {
    const port = options.tls?.[part];
    if (!running || !port) continue;
    if (need.from === 'user' && port.leaf() !== textIn(secret(need.secret), 'tls.crt'))
      return `${name} does not serve the certificate of the user on the ${part} port`; // Secrets of users are read every five minutes
    if (!accepts(target, port.leaf())) return `${name} serves a certificate of a previous CA on the ${part} port`;
    if (port.bundle !== undefined && port.bundle.trim() !== target.trim())
      return `${name} trusts other CAs than the target on the ${part} port`;
  }
  return undefined;
}

/** Root has the password of the user's Secret, and the operator's copy has no other. */
function authUnrest(world: World, cluster: EtcdCluster): Wrong {
  const { credentials, ground } = world;
  if (!credentials?.options.auth) return undefined;
  const { users } = groupOf(world)?.state ?? {};
  if (!users?.enabled) return 'auth is not enabled';
  if (cluster.status?.authEnabled !== true) return 'auth is enabled, and the status does not record it';
  if (!users.accepts({ user: 'root', password: credentials.password }))
    return 'root has another password than the Secret';
  const kept = ground.find(secrets, keptPasswordName(CLUSTER));
  if (textIn(kept, 'password') !== credentials.password || kept?.data?.['next'] !== undefined)
    return 'the copy of the root password is not settled';
  const reported = findCondition(cluster.status.conditions, 'AuthEnabled');
  return reported?.status === 'True' && reported.reason === 'Enabled'
    ? undefined
    : `AuthEnabled is ${reported?.reason}`;
}
