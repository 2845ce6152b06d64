/** The facts that a decision about one EtcdMember is made from, and the questions that rules ask of them. */
import { NO_OPERATOR_IMAGE } from '../../api/conditions.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember, EtcdMemberStatus } from '../../api/etcd-member.ts';
import { volumeClaimName } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import { addedPeerURL } from '../../domain/member-address.ts';
import type { NotYet } from '../../domain/not-yet-supported.ts';
import { type Holding, identity } from '../../domain/ownership.ts';
import type { PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import type { Decision } from '../../runtime/plan.ts';

/** What this member's etcd said about itself in this pass. */
export type SelfView =
  | { readonly is: 'notAsked' }
  | { readonly is: 'silent'; readonly why: string }
  | { readonly is: 'answers'; readonly clusterID: string; readonly memberID: string; readonly version: string };

/** What the other members know; asked only when this one is to go. */
export type PeersView =
  | { readonly is: 'none' }
  | { readonly is: 'silent'; readonly why: string }
  | {
      readonly is: 'answer';
      readonly members: readonly PeerEntry[];
    };
export interface PeerEntry {
  readonly id: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
}

/** One that never started has no name there. */
export const isListed = (member: EtcdMember, list: readonly PeerEntry[]): boolean => {
  const { metadata, status } = member;
  const url = addedPeerURL(member);
  return list.some((m) => m.id === status?.memberID || m.name === metadata.name || m.peerURLs.includes(url));
};

/** The node that this member's Pod, or its volume, is on. */
export type NodeView =
  | { readonly is: 'unknown' }
  | { readonly is: 'gone'; readonly name: string }
  | {
      readonly is: 'present';
      readonly name: string;
      /** Somebody has declared that it is off and will not write any more. */
      readonly outOfService: boolean;
      readonly notReadySince?: number;
    };

export interface Observed {
  readonly now: number;
  /** Who refused a step of the last pass, and why, as a sentence. */
  readonly refusal: string | undefined;
  readonly member: EtcdMember;
  /** The cluster that controls this member; not one that merely has its name. */
  readonly cluster: EtcdCluster | undefined;
  readonly pod: Holding<Pod>;
  readonly volume: Holding<PersistentVolumeClaim>;
  readonly node: NodeView;
  /** The data cannot be reached from any other node. Looked at only when the node is gone or out of service. */
  readonly volumeOnNode: boolean;
  /** After how long of silence a node counts as lost. */
  readonly nodeLostAfterMs: number;
  readonly etcd: SelfView;
  readonly peers: PeersView;
  /** Another member of the cluster serves. */
  readonly hasCompany: boolean;
  readonly images: ImagePolicy;
}

/** How a rule answers: `undefined` means that the case is not its own. */
export type Decided = Decision<EtcdMemberStatus> | undefined;

export const inMemory = (o: Observed): boolean => o.member.spec.storage.medium === 'Memory';
export const isDeleting = (o: Observed): boolean => o.member.metadata.deletionTimestamp !== undefined;
export const isClusterBeingDeleted = (o: Observed): boolean =>
  o.cluster === undefined || o.cluster.metadata.deletionTimestamp !== undefined;
export const isDormant = (o: Observed): boolean => o.member.spec.dormant === true;
export const retains = (o: Observed): boolean => o.member.spec.deletionPolicy === 'Retain';
export const isClusterFormed = (o: Observed): boolean => o.cluster?.status?.clusterID !== undefined;

/** This member's etcd has run as part of the cluster: its data directory must not be empty any more. A seed counts as a voter from the beginning. */
export function hasJoined(o: Observed): boolean {
  const { spec, status } = o.member;
  return status?.memberID !== undefined || (spec.bootstrap === true ? isClusterFormed(o) : status?.isVoter === true);
}

/** Names that we need and somebody else has, each as a sentence. */
export function conflicts(o: Observed): readonly string[] {
  const { name } = identity(o.member);
  return [
    ...(o.pod.is === 'foreign' ? [`Pod ${name} exists and belongs to ${o.pod.owner}`] : []),
    ...(o.volume.is === 'foreign' && !inMemory(o)
      ? [`PersistentVolumeClaim ${volumeClaimName(name)} exists and belongs to ${o.volume.owner}`]
      : []),
  ];
}

/** What the member was made to have and this build cannot give: its Pod is never made with less. */
export function notYet(o: Observed): readonly NotYet[] {
  const { tls } = o.member.spec;
  const say = (asked: boolean, subject: string, what: string): readonly NotYet[] =>
    asked ? [{ subject, message: `${what} is not supported by this build yet: no Pod is made for this member` }] : [];
  return say(tls?.peerAutoTLS === true, 'TLS', 'tls.peerAutoTLS');
}

/** Why a seed that is to begin with a snapshot cannot: without it, it would begin with nothing. */
export const cannotRestore = (o: Observed): string | undefined =>
  o.member.spec.restore !== undefined && !hasJoined(o) && o.images.operator === undefined
    ? NO_OPERATOR_IMAGE
    : undefined;
