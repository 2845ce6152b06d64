/** The observed state of one EtcdMember, and the predicates that rules share. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember, EtcdMemberStatus } from '../../api/etcd-member.ts';
import { QUARANTINE_LABEL, type Quarantine, volumeClaimName } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import type { DeletionPolicy } from '../../api/storage.ts';
import { NO_OPERATOR_IMAGE } from '../../domain/conditions.ts';
import { addedPeerURL } from '../../domain/member-address.ts';
import { type Holding, identity, isBeingDeleted } from '../../domain/ownership.ts';
import type { PersistentVolumeClaim, Pod } from '../../gen/kube.ts';
import type { Decision, Memory, Upkeep } from '../../runtime/plan.ts';

/** What this member's etcd reported about itself in this reconcile. */
export type SelfView =
  | { readonly is: 'notAsked' }
  | { readonly is: 'unreachable'; readonly message: string }
  | { readonly is: 'answers'; readonly clusterID: string; readonly memberID: string; readonly version: string };

/** The member list of the peers; requested only when this member is being deleted. */
export type PeersView =
  | { readonly is: 'none' }
  | { readonly is: 'unreachable'; readonly message: string }
  | { readonly is: 'answer'; readonly members: readonly PeerEntry[] };
export interface PeerEntry {
  readonly id: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
}

/** A member that never started has no name in etcd's list: its peer URL identifies it. */
export const isListed = (member: EtcdMember, list: readonly PeerEntry[]): boolean => {
  const { metadata, status } = member;
  const url = addedPeerURL(member);
  return list.some((m) => m.id === status?.memberID || m.name === metadata.name || m.peerURLs.includes(url));
};

/** The node of this member's Pod, or of its volume. */
export type NodeView =
  | { readonly is: 'unknown' }
  /** `observedMs` here and below: how long this process has observed it. Other clocks are no proof: data is deleted for it. */
  | { readonly is: 'gone'; readonly name: string; readonly observedMs: number }
  | {
      readonly is: 'present';
      readonly name: string;
      /** A user has tainted it out-of-service: it is shut down and will not write any more. */
      readonly outOfService: boolean;
      readonly notReady?: { readonly since: number; readonly observedMs: number };
    };

export interface Observed {
  readonly now: number;
  /** Steps of earlier reconciles that failed, were refused or had no lasting effect. */
  readonly memory: Memory;
  readonly member: EtcdMember;
  /** The cluster that controls this member; not another one of the same name. */
  readonly cluster: EtcdCluster | undefined;
  /**
   * The deletionPolicy in the spec of its cluster, now or when it was deleted; observed only when this member is being deleted.
   * Pending: the event of the cluster's deletion, which has the policy, is still to come. `undefined`: it cannot be read any more.
   */
  readonly policy: DeletionPolicy | 'pending' | undefined;
  readonly pod: Holding<Pod>;
  readonly volume: Holding<PersistentVolumeClaim>;
  readonly node: NodeView;
  /** No other node can mount the volume. Observed only when the node is deleted or out of service. */
  readonly volumeOnNode: boolean;
  /** How long a node may be NotReady before it counts as lost. */
  readonly nodeLostAfterMs: number;
  readonly etcd: SelfView;
  readonly peers: PeersView;
  /** Another member of the cluster is serving. */
  readonly hasCompany: boolean;
  readonly images: ImagePolicy;
}

/** What a rule returns; `undefined`: the rule does not apply. */
export type Decided = Decision<EtcdMemberStatus> | undefined;
/** What a row of upkeep returns. */
export type Contributed = Upkeep<EtcdMemberStatus> | undefined;

export const inMemory = (o: Observed): boolean => o.member.spec.storage.medium === 'Memory';
export const isPvcTerminating = (o: Observed): boolean =>
  o.volume.is === 'ours' && !inMemory(o) && isBeingDeleted(o.volume.object);
/** The cluster controller has quarantined the PVC, because it replaces this member on failure evidence. */
export const isQuarantined = ({ volume }: Observed): boolean =>
  volume.is === 'ours' &&
  volume.object.metadata.labels?.[QUARANTINE_LABEL] === ('member-replaced' satisfies Quarantine);
/** Also by the record of the cluster: a webhook may refuse the label or remove it, and a PVC without labels is not in the cache. */
export const isReplaced = (o: Observed): boolean => {
  const { spec, status } = o.cluster ?? {};
  const isRecorded = status?.repair?.recent?.some(({ member }) => member === o.member.metadata.name) === true;
  return isQuarantined(o) || (isRecorded && spec?.volumeQuarantine?.enabled !== false);
};
export const isDeleting = (o: Observed): boolean => o.member.metadata.deletionTimestamp !== undefined;
export const isClusterBeingDeleted = (o: Observed): boolean =>
  o.cluster === undefined || o.cluster.metadata.deletionTimestamp !== undefined;
export const isDormant = (o: Observed): boolean => o.member.spec.dormant === true;
export const isClusterFormed = (o: Pick<Observed, 'cluster'>): boolean => o.cluster?.status?.clusterID !== undefined;

/** This member's etcd has been part of the cluster, so its data directory must not be empty any more. A seed votes from bootstrap on. */
export function hasJoined(o: Pick<Observed, 'member' | 'cluster'>): boolean {
  const { spec, status } = o.member;
  return status?.memberID !== undefined || (spec.bootstrap === true ? isClusterFormed(o) : status?.isVoter === true);
}

/** Objects of this member's names that another owner has, one message each. */
export function conflicts(o: Observed): readonly string[] {
  const { name } = identity(o.member);
  return [
    ...(o.pod.is === 'foreign' ? [`Pod ${name} exists and belongs to ${o.pod.owner}`] : []),
    ...(o.volume.is === 'foreign' && !inMemory(o)
      ? [`PersistentVolumeClaim ${volumeClaimName(name)} exists and belongs to ${o.volume.owner}`]
      : []),
  ];
}

/** Why a seed cannot restore its snapshot: without the restore it would bootstrap an empty cluster. */
export const cannotRestore = (o: Observed): string | undefined =>
  o.member.spec.restore !== undefined && !hasJoined(o) && o.images.operator === undefined
    ? NO_OPERATOR_IMAGE
    : undefined;
