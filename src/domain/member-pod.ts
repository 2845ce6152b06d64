/** Whether the operator would create the Pod of a member: the cluster controller asks before it takes a Pod away. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { deniedArgument } from '../api/extra-args.ts';
import { etcdImageOf, forbiddenImage, type ImagePolicy } from '../api/security.ts';
import { sameJson } from '../lib/merge-patch.ts';
import { certificatesOf } from './certificate-requirements.ts';
import type { Blocked } from './disruption.ts';
import { identity } from './ownership.ts';
import { withChosenSource } from './restore-source.ts';

/**
 * The image with which the member may join, or has joined. A member that has joined keeps its image when the list of the
 * administrator is narrowed: otherwise every eviction would cost a voter for good. The recorded image is compared, so that an
 * edit of its EtcdMember does not make another forbidden image usable.
 */
export function imageBlockedBy(member: EtcdMember, images: ImagePolicy): string | undefined {
  const kept = member.status?.image === etcdImageOf(member.spec, images.repository);
  return kept ? undefined : forbiddenImage(images, member.spec.image?.repository);
}

/**
 * The rules of the CRD check the extraArgs of clusters, not the copies in members. Flags of the cluster itself are accepted: an
 * earlier operator's rules may have allowed them, and its members must not lose their Pods.
 */
function deniedFlag({ spec }: EtcdMember, cluster: EtcdCluster): string | undefined {
  const accepted = [...(cluster.spec.extraArgs ?? []), ...(cluster.status?.observed?.extraArgs ?? [])];
  const entry = spec.extraArgs?.find((each) => !accepted.includes(each) && deniedArgument(each) !== undefined);
  return entry === undefined ? undefined : `extraArgs has an entry that is not accepted: ${deniedArgument(entry)}`;
}

/** A member mounts the Secrets of its cluster only: otherwise a user who may write EtcdMembers could mount every Secret of the namespace. */
function foreignReference({ spec, status }: EtcdMember, cluster: EtcdCluster): string | undefined {
  // The names of the Secrets that its Pod mounts begin with it.
  if (spec.clusterName !== identity(cluster).name) return 'its clusterName is not that of its owner';
  const { clusterToken, clusterID } = cluster.status ?? {};
  const namesSecrets = spec.tls !== undefined || spec.restore !== undefined;
  // A cluster that names what the administrator does not permit is never bootstrapped: a member written by a user would use it all the same.
  if (namesSecrets && clusterToken === undefined && clusterID === undefined)
    return `EtcdCluster ${spec.clusterName} is not bootstrapped, and whether it may use what the member names is not decided`;
  const own = certificatesOf(cluster).flatMap((each) => [each.secret, ...(each.from === 'user' ? [each.mount] : [])]);
  const mounted = [spec.tls?.clientServerSecretRef?.name, spec.tls?.peerSecretRef?.name];
  const foreign = mounted.find((name) => name !== undefined && !own.includes(name));
  if (foreign !== undefined) return `tls names Secret ${foreign}, which EtcdCluster ${spec.clusterName} does not use`;
  const restores = spec.restore !== undefined && status?.memberID === undefined;
  const { source, encryption } = withChosenSource(cluster).spec.bootstrap?.restore ?? {};
  const isOwn = sameJson([spec.restore?.source, spec.restore?.encryption], [source, encryption]);
  return restores && !isOwn ? `restore is not the bootstrap.restore of EtcdCluster ${spec.clusterName}` : undefined;
}

/** Why no Pod is created for the member. */
export function podBlockedBy(
  member: EtcdMember,
  images: ImagePolicy,
  cluster: EtcdCluster | undefined,
): Blocked | undefined {
  const forbidden = imageBlockedBy(member, images);
  if (forbidden !== undefined) return { reason: 'ImageNotAllowed', message: forbidden };
  if (!cluster) return undefined;
  const remedy = 'no Pod is created. Correct or delete the EtcdMember: the operator writes EtcdMembers, users do not';
  const flag = deniedFlag(member, cluster);
  if (flag !== undefined) return { reason: 'FlagNotAllowed', message: `${flag}: ${remedy}` };
  const reference = foreignReference(member, cluster);
  if (reference === undefined) return undefined;
  return { reason: 'ReferenceNotPermitted', message: `${reference}: ${remedy}` };
}
