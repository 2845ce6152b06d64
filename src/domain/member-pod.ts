/** Whether the operator would create the Pod of a member: the cluster controller asks before it takes a Pod away. */
import type { EtcdMember } from '../api/etcd-member.ts';
import { etcdImageOf, forbiddenImage, type ImagePolicy } from '../api/security.ts';
import type { Blocked } from './disruption.ts';
import { NOT_YET_SUPPORTED, type NotYet } from './not-yet-supported.ts';

/** Spec fields that this build does not support: a Pod without them could be less secure than the spec asks for. */
export function notYetOf({ spec }: EtcdMember): readonly NotYet[] {
  const message = 'tls.peerAutoTLS is not supported by this build yet: no Pod is created for this member';
  return spec.tls?.peerAutoTLS === true ? [{ subject: 'TLS', message }] : [];
}

/**
 * The image with which the member may join, or has joined. A member that has joined keeps its image when the list of the
 * administrator is narrowed: otherwise every eviction would cost a voter for good. The recorded image is compared, so that an
 * edit of its EtcdMember does not make another forbidden image usable.
 */
export function imageBlockedBy(member: EtcdMember, images: ImagePolicy): string | undefined {
  const kept = member.status?.image === etcdImageOf(member.spec, images.repository);
  return kept ? undefined : forbiddenImage(images, member.spec.image?.repository);
}

/** Why no Pod is created for the member. */
export function podBlockedBy(member: EtcdMember, images: ImagePolicy): Blocked | undefined {
  const [unsupported] = notYetOf(member);
  if (unsupported) return { reason: NOT_YET_SUPPORTED, message: unsupported.message };
  const forbidden = imageBlockedBy(member, images);
  return forbidden === undefined ? undefined : { reason: 'ImageNotAllowed', message: forbidden };
}
