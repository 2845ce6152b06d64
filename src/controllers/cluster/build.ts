/** Builds the objects of a cluster. */

import { defaultsOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { Target } from '../../api/etcd-cluster-status.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import {
  API_VERSION,
  CLIENT_PORT,
  CLUSTER_LABEL,
  clientServiceName,
  clusterLabels,
  etcdClusters,
  headlessServiceName,
  MEMBER_FINALIZER,
  memberLabels,
  PEER_PORT,
  pdbName,
  peerMountName,
  peerName,
  peerURL,
  RESTARTED_AT_ANNOTATION,
  ROLE_LABEL,
  ROLE_VOTER,
  serverMountName,
} from '../../api/names.ts';
import type { AdditionalMetadata } from '../../api/resources.ts';
import type { Tls } from '../../api/tls.ts';
import { metadataWith } from '../../domain/additional-metadata.ts';
import { isMutual } from '../../domain/certificate-requirements.ts';
import { identity, ownedBy } from '../../domain/ownership.ts';
import type { PodDisruptionBudget, Secret, Service, ServicePort, ServiceSpec } from '../../gen/kube.ts';
import { mergePatch, sameJson } from '../../lib/merge-patch.ts';
import { present } from '../../lib/present.ts';
import type { EtcdMemberEntry } from './observed.ts';
import { type Peers, peerSchemeOf, peersOfSeed } from './peers.ts';

const port = (name: string, number: number): ServicePort => ({
  name,
  port: number,
  targetPort: number,
  protocol: 'TCP',
});

/** The metadata of an object that is deleted with its cluster. */
export function ownedMetadata(cluster: EtcdCluster, name: string): ObjectMeta {
  const { namespace, name: clusterName } = identity(cluster);
  return {
    name,
    namespace,
    ...metadataWith(cluster.spec.additionalMetadata, clusterLabels(clusterName)),
    ownerReferences: ownedBy(etcdClusters, cluster),
  };
}

const service = (cluster: EtcdCluster, name: string, spec: ServiceSpec): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: ownedMetadata(cluster, name),
  spec,
});

/** Gives every member a DNS name before it is ready: members resolve each other while they start. */
export function headlessService(cluster: EtcdCluster): Service {
  const { name } = identity(cluster);
  return service(cluster, headlessServiceName(name), {
    clusterIP: 'None',
    publishNotReadyAddresses: true,
    selector: { [CLUSTER_LABEL]: name },
    ports: [port('client', CLIENT_PORT), port('peer', PEER_PORT)],
  });
}

/** Where clients connect: voters only, because learners refuse most requests. */
export function clientService(cluster: EtcdCluster): Service {
  const { name } = identity(cluster);
  return service(cluster, clientServiceName(name), {
    selector: { [CLUSTER_LABEL]: name, [ROLE_LABEL]: ROLE_VOTER },
    ports: [port('client', CLIENT_PORT)],
  });
}

/** The fields of a Service that the operator owns; a user may change all others. */
export const ownedFields = ({ spec }: Service): Readonly<Record<string, unknown>> => ({
  spec: {
    selector: spec?.selector,
    ports: spec?.ports,
    ...(spec?.publishNotReadyAddresses && { publishNotReadyAddresses: true }),
  },
});

/** Whether a field that the operator owns was changed. A user may add ports. */
export function hasDrifted(actual: Service, built: Service): boolean {
  const [is, want] = [actual.spec, built.spec];
  const published = want?.publishNotReadyAddresses !== true || is?.publishNotReadyAddresses === true;
  const carries = (p: ServicePort): boolean =>
    (is?.ports ?? []).some(
      (q) =>
        q.name === p.name &&
        q.port === p.port &&
        (q.protocol ?? 'TCP') === p.protocol &&
        (q.targetPort ?? q.port) === p.targetPort,
    );
  return !(published && sameJson(is?.selector, want?.selector) && (want?.ports ?? []).every(carries));
}

/** Keeps `minAvailable` voters running while nodes are drained. */
export function pdb(cluster: EtcdCluster, minAvailable: number): PodDisruptionBudget {
  const { name } = identity(cluster);
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: ownedMetadata(cluster, pdbName(name)),
    spec: {
      minAvailable,
      selector: { matchLabels: { [CLUSTER_LABEL]: name, [ROLE_LABEL]: ROLE_VOTER } },
      // A broken member may be evicted while the others keep the quorum. Without a quorum every member is unready, and with
      // AlwaysAllow one drain after the other could then take all of them, and with them data that is only in memory.
      unhealthyPodEvictionPolicy: 'IfHealthyBudget',
    },
  };
}

/**
 * The patch of the fields that the operator owns; it also removes the maxUnavailable of an older one. Other fields stay: a policy
 * may set them, and a later Kubernetes may have a default for a field that is unknown today.
 */
export const pdbPatch = (
  { spec: is }: PodDisruptionBudget,
  { spec: want }: PodDisruptionBudget,
): Readonly<Record<string, unknown>> | undefined => {
  const owned = ['maxUnavailable', ...Object.keys(want ?? {})];
  const others = Object.entries(is ?? {}).filter(([field]) => !owned.includes(field));
  const spec = mergePatch(is, { ...Object.fromEntries(others), ...want });
  return spec && { spec };
};

type Entries = Readonly<Record<string, string | null>>;

/** The patch to the labels and annotations of the spec; keys of the previous spec are removed. */
export function metadataPatch(
  object: { readonly metadata: ObjectMeta },
  before: AdditionalMetadata | undefined,
  wanted: AdditionalMetadata | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const [was, is] = [metadataWith(before, {}), metadataWith(wanted, {})];
  const differing = (has: Entries = {}, old: Entries = {}, want: Entries = {}): Entries => ({
    ...Object.fromEntries(Object.keys(old).flatMap((k) => (k in has && !(k in want) ? [[k, null]] : []))),
    ...Object.fromEntries(Object.entries(want).filter(([k, v]) => has[k] !== v)),
  });
  const own = Object.keys(clusterLabels(''));
  const keep = (labels: Entries): Entries =>
    Object.fromEntries(Object.entries(labels).filter(([k]) => !own.includes(k)));
  const labels = keep(differing(object.metadata.labels, was.labels, is.labels));
  const annotations = differing(object.metadata.annotations, was.annotations, is.annotations);
  if (Object.keys(labels).length + Object.keys(annotations).length === 0) return undefined;
  return { metadata: { labels, annotations } };
}

/** The TLS settings of a member: the Secrets that it mounts, and whether clients need a certificate. */
const memberTls = (
  cluster: string,
  tls: Tls,
  autoTls: boolean,
  peerCertAllowedHostname: string | undefined,
): NonNullable<EtcdMember['spec']['tls']> => ({
  ...(tls.client && {
    clientServerSecretRef: { name: serverMountName(cluster) },
    ...(isMutual(tls) && { clientMTLS: true }),
  }),
  ...(autoTls && { peerAutoTLS: true }),
  ...(tls.peer &&
    !autoTls && { peerSecretRef: { name: peerMountName(cluster) }, ...present({ peerCertAllowedHostname }) }),
});

/** A managed Secret, which only the operator writes. */
export const secretOf = <D>(
  cluster: EtcdCluster,
  name: string,
  data: D,
  type = 'kubernetes.io/tls',
): Omit<Secret, 'data'> & { readonly data: D } => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: ownedMetadata(cluster, name),
  type,
  data,
});

/** `--max-learners`: enough to grow from one member to nine. All members must have the same value, so it never changes. */
const MAX_LEARNERS = 8;

/** A new member has been started after the restart that was requested before. */
function restartRequestOf({ metadata }: EtcdCluster): { readonly annotations?: Readonly<Record<string, string>> } {
  const value = metadata.annotations?.[RESTARTED_AT_ANNOTATION];
  return value === undefined ? {} : { annotations: { [RESTARTED_AT_ANNOTATION]: value } };
}

/** The fields that the seed and joining members share. */
function member(
  cluster: EtcdCluster,
  name: string,
  target: Target,
  { token, initialCluster, peers }: { readonly token: string; readonly initialCluster: string; readonly peers: Peers },
): EtcdMember {
  const { name: clusterName, namespace } = identity(cluster);
  const { replicas: _, ...template } = target;
  const { deletionPolicy } = cluster.spec;
  const pinned = peers.pinned ? peerName(clusterName, namespace) : undefined;
  return {
    apiVersion: API_VERSION,
    kind: 'EtcdMember',
    metadata: {
      name,
      namespace,
      ...metadataWith(target.additionalMetadata, memberLabels(clusterName, name), restartRequestOf(cluster)),
      finalizers: [MEMBER_FINALIZER],
      ownerReferences: ownedBy(etcdClusters, cluster),
    },
    spec: {
      ...template,
      clusterName,
      initialCluster,
      clusterToken: token,
      ...((cluster.spec.tls || peers.autoTls) && {
        tls: memberTls(clusterName, cluster.spec.tls ?? {}, peers.autoTls, pinned),
      }),
      // Members that an earlier operator created run without it, and all members must have the same value.
      ...(defaultsOf(cluster.status) !== undefined && { maxLearners: MAX_LEARNERS }),
      ...(deletionPolicy !== undefined && { deletionPolicy }),
    },
  };
}

/** The member that bootstraps the cluster. The operator chooses its name, so its peer URL is known at creation. */
export function seedMember(cluster: EtcdCluster, name: string, target: Target, token: string): EtcdMember {
  const { name: clusterName, namespace } = identity(cluster);
  const peers = peersOfSeed(cluster);
  const initialCluster = `${name}=${peerURL(name, clusterName, namespace, peerSchemeOf(cluster, peers))}`;
  const seed = member(cluster, name, target, { token, initialCluster, peers });
  const restore = cluster.spec.bootstrap?.restore;
  return { ...seed, spec: { ...seed.spec, bootstrap: true, ...(restore && { restore }) } };
}

/** A member that joins the cluster; etcd's member list already contains it. */
export const joiningMember = (
  cluster: EtcdCluster,
  name: string,
  target: Target,
  entries: readonly EtcdMemberEntry[],
  peers: Peers,
): EtcdMember =>
  member(cluster, name, target, {
    token: cluster.status?.clusterToken ?? '',
    initialCluster: joinList(entries),
    peers,
  });

/** A member that has not started has no name in the list; the host of its peer URL starts with it. */
export const nameIn = (entry: EtcdMemberEntry): string =>
  entry.name || (/^https?:\/\/([^.:/]+)/.exec(entry.peerURLs[0] ?? '')?.[1] ?? '');

/** The value of --initial-cluster. The URLs are those of etcd's member list: adopted members may have other host names. */
export const joinList = (entries: readonly EtcdMemberEntry[]): string =>
  entries
    .flatMap((entry) => entry.peerURLs.map((url) => `${nameIn(entry)}=${url}`))
    .sort()
    .join(',');
