/** The observed state of one EtcdCluster that rules decide on, and the predicates that they share. */

import type { Mount } from '../../access/evaluate/view.ts';
import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster, EtcdClusterSpec } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus, Target } from '../../api/etcd-cluster-status.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import { DATA_INCONSISTENT, type EtcdMember, EVIDENCE, NO_DATA, NO_READABLE_DATA } from '../../api/etcd-member.ts';
import type { EtcdSnapshot } from '../../api/etcd-snapshot.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import {
  agentPolicyName,
  clientServiceName,
  type EtcdPortName,
  headlessServiceName,
  memberName,
  memberPolicyName,
  pdbName,
} from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { DefragFleet } from '../../domain/defragmentation.ts';
import type { Blocked } from '../../domain/disruption.ts';
import { type EtcdMemberEntry, isEntryOf } from '../../domain/member-entry.ts';
import { type Holding, identity, isBeingDeleted } from '../../domain/ownership.ts';
import type { Stamp } from '../../domain/pod-template.ts';
import type { Report } from '../../domain/quorum.ts';
import type { ChosenSource } from '../../domain/restore-source.ts';
import { type ReadHolding, unreadObject } from '../../domain/unread.ts';
import type { NetworkPolicy, PersistentVolumeClaim, PodDisruptionBudget, Service } from '../../gen/kube.ts';
import type { Decision, Memory, Plan, Upkeep } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import type { CredentialsLatch, GatheredCredentials } from './credentials/observed.ts';
import type { CredentialsState } from './credentials/state.ts';
import type { HeldPolicies, NetworkSettings } from './network-policy.ts';
import type { ReplacementRate } from './replacement-rate.ts';
import type { RestoreView } from './restore.ts';
import type { Turns } from './rollout/turn.ts';

export { type EtcdMemberEntry, isEntryOf } from '../../domain/member-entry.ts';

/** The fields of a member's Pod that the cluster controller reads. */
export type PodView =
  | { readonly is: 'absent' }
  | {
      readonly is: 'present';
      readonly uid?: string;
      /** The Pod is being deleted; its etcd may respond until the process exits. */
      readonly terminating?: boolean;
      /** When a Pod that is being deleted is killed at the latest, and the next one may start. */
      readonly endsBy?: number;
      readonly ip?: string;
      readonly ready: boolean;
      readonly createdAt?: number;
      readonly startedAt?: number;
      /** When the current etcd process started. */
      readonly runningSince?: number;
      /** The kubelet has restarted the etcd container of this Pod. */
      readonly restarted?: boolean;
      /** `--max-learners` of its etcd. */
      readonly maxLearners: number;
      readonly tls?: Readonly<Partial<Record<EtcdPortName, Mount>>>;
      /** Set only for a seed that restores a snapshot. */
      readonly restore?: RestoreView;
      /** How long its etcd goes on after the Pod was deleted, and has left the client Service: `preStop`. */
      readonly preStopMs?: number;
      /** Made for a restore, to be replaced afterwards. Not set for Pods of an earlier operator: an upgrade restarts no member. */
      readonly isForRestore?: boolean;
      /** When the Pod was taken out of the client Service for a restart. */
      readonly drainingSince?: number;
      /** What it was built from; `undefined` for a Pod of an earlier operator. */
      readonly stamp?: Stamp;
      readonly node?: string;
    };

/** What a member's own etcd reported in this reconcile. Ids are hexadecimal, as etcdctl prints them; without a leader, `leader` is `undefined`. */
export interface SelfReport extends Report {
  readonly clusterID: string;
  readonly isLearner: boolean;
  readonly version: string;
  readonly databaseBytes: number;
  readonly databaseBytesInUse: number;
  readonly term: number;
  /** The version of the format of its data, such as `3.6.0`; from etcd 3.6 on. */
  readonly storageVersion?: string;
  /** The version that a downgrade has been enabled to, such as `3.6.0`; from etcd 3.6 on. */
  readonly downgradeTo?: string;
}

export interface MemberView {
  readonly object: EtcdMember;
  readonly pod: PodView;
  /** Its PersistentVolumeClaim, if the cache has one. */
  readonly pvc?: 'present' | 'terminating';
  /** Its node was deleted, or is out of service. */
  readonly nodeGone?: boolean;
  /** Whether its node is Ready, and since when. */
  readonly nodeReady?: string;
  /** For how long this process has observed that its Pod is not ready, since its etcd started and its node became Ready again. */
  readonly unreadyForMs?: number;
  /** Of its node. */
  readonly zone?: string;
  /** Its node is cordoned, or about to be drained. */
  readonly nodeCordoned?: boolean;
  readonly pvcObject?: PersistentVolumeClaim;
  /** `undefined`: its etcd was not asked, or did not respond. */
  readonly self?: SelfReport | undefined;
  /** Only of the member that is being defragmented: etcd answers no read until it has finished. */
  readonly answersReads?: boolean;
  /** The member id that responds at its address when it is not the recorded one: another member of this cluster, or this one after it was removed and added again. */
  readonly answersAs?: string;
}

/** What etcd reported in this reconcile. */
export type EtcdView =
  | { readonly is: 'notAsked' }
  /** `authRequired`: the operator has no password; `authRejected`: etcd rejects every password that the operator has. */
  | { readonly is: 'unreachable' | 'authRequired' | 'authRejected'; readonly message: string }
  | {
      readonly is: 'answers';
      readonly clusterID: string;
      readonly members: readonly EtcdMemberEntry[];
      /** The members have not agreed on a cluster version yet. Asked only where that keeps another member from joining. */
      readonly unversioned?: boolean;
      /** Alarms of all members, including members that were removed. */
      readonly alarms: readonly { readonly id: string; readonly alarm: string }[];
    };

/** Why no member gave the operator a member list; `undefined` when one did, or none was asked. */
export const etcdError = ({ etcd }: { readonly etcd: EtcdView }): string | undefined =>
  etcd.is === 'answers' || etcd.is === 'notAsked' ? undefined : etcd.message;

/** Whether the API server would accept the next Pod of a member. */
export interface Successor {
  /** The EtcdMember. */
  readonly member: string;
  readonly refusedBy?: string;
}

/** What came of the request for the recorded defragmentation; failed: also when no response arrived. */
export type DefragResponse =
  | { readonly is: 'awaited' | 'succeeded' }
  | { readonly is: 'failed'; readonly message: string };

/** Of the database with the most in use. */
export interface SpaceTrend {
  readonly bytesPerHour: number;
  readonly overMs: number;
}

/** The hash of a member's data. Hashes are comparable only where `at` agrees. */
export interface MemberHash {
  readonly member: string;
  /** `undefined` when it did not respond with one. */
  readonly hash: string | undefined;
  /** The revision, and the revision up to which history was compacted. */
  readonly at: string;
}

export interface ClusterFacts {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** How far the wall clock has jumped ahead since the PVCs in quarantine were put there; absent: it has not. */
  readonly clockAheadMs?: number;
  /** Steps of earlier reconciles that failed, were refused or had no lasting effect. */
  readonly memory: Memory;
  /** Milliseconds since 1970. Since then every healthy voter has refused a membership change with "unhealthy cluster". */
  readonly refusedSince?: number;
  /** Replacements of members of all clusters. */
  readonly replacementRate?: ReplacementRate;
  /** Other clusters that roll edits out; absent: any number may. */
  readonly turns?: Turns;
  readonly cluster: EtcdCluster;
  readonly services: { readonly headless: ReadHolding<Service>; readonly client: ReadHolding<Service> };
  /** Read only after the bootstrap: before that there is no quorum to protect. */
  readonly pdb: ReadHolding<PodDisruptionBudget>;
  /** Its NetworkPolicies, and what else decides about them. */
  readonly network?: { readonly settings: NetworkSettings; readonly held: HeldPolicies };
  /** The EtcdMember that has the name of the seed, which may belong to another cluster. */
  readonly seed: Holding<EtcdMember>;
  /** How long this process has observed the seed, or the present run of its etcd, before the bootstrap. */
  readonly seedObservedMs?: number;
  /** Controlled by this cluster or to be adopted by it, sorted by name, including EtcdMembers that are being deleted. */
  readonly members: readonly MemberView[];
  readonly etcd: EtcdView;
  /** The revision of the data that all members that respond have; 0: none does. */
  readonly revision?: number;
  /** How the space in use develops; absent until it has been observed for half an hour. */
  readonly spaceTrend?: SpaceTrend;
  /** PVCs of removed members. */
  readonly quarantined: readonly PersistentVolumeClaim[];
  /** PVCs with the label of this cluster; listed only when the API server has no EtcdMember of it. */
  readonly leftVolumes?: readonly string[];
  /** Pods with the label of this cluster that have not ended; listed when it has no EtcdMember. */
  readonly leftPods?: readonly string[];
  /** The image repositories that the administrator allows. */
  readonly images: ImagePolicy;
  /** What the spec names and the administrator does not permit; observed only before the bootstrap. */
  readonly notPermitted?: string;
  /** The snapshot that bootstrap.restore refers to: `cluster.spec` has its location. Observed until it is latched. */
  readonly restoreSource?: ChosenSource;
  /** Why that snapshot cannot be restored now. */
  readonly restoreBlockedBy?: Blocked;
  /** Keys of additionalMetadata that the administrator denies: `cluster.spec` does not have them. */
  readonly deniedKeys?: readonly string[];
  /** Of the members that may be restarted now. */
  readonly successors?: readonly Successor[];
  /** The hashes of the members' data; asked for only before the first member gets another minor. */
  readonly hashes?: readonly MemberHash[];
  /** The EtcdSnapshot that was taken before a change of the minor. */
  readonly versionSnapshot?: EtcdSnapshot;
  /** The EtcdSnapshotSchedules of this cluster. */
  readonly schedules: readonly EtcdSnapshotSchedule[];
  /** The EtcdDefrag whose turn it is. */
  readonly defrag?: EtcdDefrag;
  /** Other clusters that are being defragmented; observed only while there is an EtcdDefrag. */
  readonly defragFleet?: DefragFleet;
  /** Absent: this process has not sent the request, but one before it. */
  readonly defragResponse?: DefragResponse;
  /** The EtcdDefrag that `status.remedy` names. */
  readonly remedyDefrag?: EtcdDefrag;
  /** How long this process has observed that the history is being compacted: the one before it may have been killed before it asked etcd. */
  readonly remedyObservedMs?: number;
  /** The members that snapshots stream from; read only while there is an EtcdDefrag. A string: why they are unknown. */
  readonly streams?: readonly string[] | string;
}

/** What `observe` returns. */
export type Gathered = ClusterFacts & GatheredCredentials;

/** What rules decide on: of credentials only the answer of their chain. */
export interface Observed extends ClusterFacts {
  readonly credentials: CredentialsState;
  /** What would be done now if the cluster were not suspended; `undefined` when it is not. */
  readonly whenResumed?: Plan<EtcdClusterStatus, ClusterCall>;
  /** Why the spec of the user is not applied: `cluster.spec` is the recorded target instead. */
  readonly specBlockedBy?: Blocked;
  /** The spec of the user then. */
  readonly blockedSpec?: EtcdClusterSpec;
}

/**
 * Whether every member demands the name of peers in their certificates. The seed of a new cluster does; certificates of a cluster
 * that an earlier operator bootstrapped may lack the name, and a member that demands it could not join.
 */
export const arePeersPinned = ({ members }: ClusterFacts): boolean =>
  members.length > 0 && members.every(({ object }) => object.spec.tls?.peerCertAllowedHostname !== undefined);

/** Without the fields that only the credentials chain latches. */
type OwnLatch = Omit<EtcdClusterStatus, keyof CredentialsLatch>;

/** What a rule returns; `undefined` means that it does not apply. */
export type ClusterDecision = Decision<OwnLatch, ClusterCall> & {
  /** No membership change is under way although the rule decided: maintenance need not wait. */
  readonly atRest?: boolean;
  /** The member that it restarts: it stays out of the client Service. */
  readonly restarts?: MemberView;
};
export type Decided = ClusterDecision | undefined;
/** What a row of upkeep returns. */
export type ClusterUpkeep = Upkeep<OwnLatch, ClusterCall>;
export type Contributed = ClusterUpkeep | undefined;

/**
 * The number of the member that bootstraps the cluster. It is recorded before the seed is created, and only a seed that is to be
 * deleted gets a successor with the next one: the Pod and the PVC of the old seed may keep their names for ever on a dead node.
 */
export const seedNumber = ({ status }: EtcdCluster): number => Math.max(status?.membersNamed ?? 0, 1);

export const seedName = (cluster: EtcdCluster): string => {
  const { name, uid } = identity(cluster);
  return memberName(name, uid, seedNumber(cluster));
};

export const isFormed = (o: ClusterFacts): boolean => o.cluster.status?.clusterID !== undefined;
/** The token is latched before anything is created: without it, the cluster may have been deleted already. */
export const hasToken = (o: ClusterFacts): boolean => o.cluster.status?.clusterToken !== undefined;
export const wanted = (o: ClusterFacts): Target => targetOf(o.cluster.spec, o.cluster.status);

/**
 * A user has deleted the PVC of a running member: Kubernetes keeps it exactly as long as the Pod exists. The operator replaces
 * the member, and deletes its Pod only after etcd has removed it.
 */
export const isLosingPvc = (m: MemberView): boolean => isPvcKeptByPod(m) && isNotBeingDeleted(m);
/**
 * Its Pod is being deleted, or is deleted, and the data in memory with it. While its etcd goes on, which it does for some seconds
 * by `preStop`, a learner that replaces it starts already.
 */
export const isLosingMemory = (m: MemberView): boolean =>
  isInMemory(m) &&
  hasJoined(m) &&
  isNotBeingDeleted(m) &&
  !isDormant(m) &&
  (m.pod.is === 'absent' || m.pod.terminating === true);
export const isLosingData = (m: MemberView): boolean => isLosingPvc(m) || isLosingMemory(m);
const isPvcKeptByPod = (m: MemberView): boolean => m.pvc === 'terminating' && m.pod.is === 'present' && !isInMemory(m);
/**
 * Pausing would delete the Pod that keeps the PVC of a member, also of one that etcd has not removed yet. A Pod that is being
 * deleted already cannot be kept.
 */
export const isPauseHeld = (o: ClusterFacts): boolean =>
  isFormed(o) &&
  wanted(o).replicas === 0 &&
  o.members.some((m) => isPvcKeptByPod(m) && m.pod.is === 'present' && m.pod.terminating !== true);

/** While pausing is held: as many members as before, or, if that is not recorded any more, those whose PVC stays. */
export function desired(o: ClusterFacts): number {
  if (!isPauseHeld(o)) return wanted(o).replicas;
  const durable = o.members.filter((m) => isVoter(m) && !isLosingPvc(m)).length;
  return o.cluster.status?.observed?.replicas || Math.max(durable, 1);
}

export const nameOf = (m: MemberView): string => m.object.metadata.name ?? '';
export const createdAt = (m: MemberView): number => Date.parse(m.object.metadata.creationTimestamp ?? '');
export const readyCondition = (member: EtcdMember) => findCondition(member.status?.conditions, 'Ready');
export const isNotBeingDeleted = (m: MemberView): boolean => !isBeingDeleted(m.object);
export const isDormant = (m: MemberView): boolean => m.object.spec.dormant === true;
export const isInMemory = (m: MemberView): boolean => m.object.spec.storage.medium === 'Memory';
export const isVoter = (m: MemberView): boolean => m.object.status?.isVoter === true && isNotBeingDeleted(m);
export const isReadyVoter = (m: MemberView): boolean =>
  isVoter(m) && readyCondition(m.object)?.status === 'True' && m.pod.is === 'present' && m.pod.ready;
/** Its etcd has been part of the cluster: its volume has data and must not be recreated empty. */
export const hasJoined = (m: MemberView): boolean => m.object.status?.memberID !== undefined;

/** The earlier operator created the EtcdMember before it added the member to etcd. */
export const isPending = (m: MemberView): boolean => m.object.spec.initialCluster === '';

/** Its etcd exits at every start, because its data differs from that of a peer. */
export const isInconsistent = (m: MemberView): boolean => readyCondition(m.object)?.reason === DATA_INCONSISTENT;

/** Failure evidence: why the member will not recover by itself. Its Ready condition is never older than its Pod. */
export function evidence(m: MemberView): { readonly reason: string; readonly message: string } | undefined {
  const ready = readyCondition(m.object);
  const known: readonly string[] = Object.values(EVIDENCE);
  return ready?.status === 'False' && known.includes(ready.reason)
    ? { reason: ready.reason, message: ready.message }
    : undefined;
}
/** A member that responds has its data, even if its condition still reports a loss. */
export const hasNoReadableData = (m: MemberView): boolean =>
  m.self === undefined && NO_READABLE_DATA.includes(evidence(m)?.reason ?? '');
export const hasNoData = (m: MemberView): boolean =>
  hasNoReadableData(m) && NO_DATA.includes(evidence(m)?.reason ?? '');
export const brokenMembers = (o: ClusterFacts): number => o.members.filter((m) => evidence(m) !== undefined).length;

/** etcd's member list, used only when it has the recorded cluster ID: another cluster may have taken over the address. */
export const entriesOf = (o: ClusterFacts): readonly EtcdMemberEntry[] | undefined =>
  o.etcd.is === 'answers' && o.etcd.clusterID === o.cluster.status?.clusterID ? o.etcd.members : undefined;

export const entryOf = (o: ClusterFacts, m: MemberView): EtcdMemberEntry | undefined =>
  entriesOf(o)?.find((entry) => isEntryOf(entry, m.object));
export const memberOf = (o: ClusterFacts, entry: EtcdMemberEntry): MemberView | undefined =>
  o.members.find((m) => isEntryOf(entry, m.object));

/**
 * Its etcd has published its name and has run since. It votes and replicates although it may not respond for seconds: if its
 * name came with a raft snapshot, etcd 3.6 publishes it a second time before it serves.
 */
export const participates = (o: ClusterFacts, m: MemberView): boolean => {
  const runs = m.pod.is === 'present' && m.pod.runningSince !== undefined && m.pod.restarted !== true;
  return runs && isNotBeingDeleted(m) && !hasJoined(m) && (entryOf(o, m)?.name ?? '') !== '';
};

export const wantsPdb = (cluster: EtcdCluster): boolean => cluster.spec.podDisruptionBudget?.enabled !== false;

/** By name. */
const heldPolicies = ({
  cluster,
  network,
}: ClusterFacts): readonly (readonly [string, ReadHolding<NetworkPolicy>])[] => {
  const { name } = identity(cluster);
  if (!network) return [];
  return [
    [memberPolicyName(name), network.held.members],
    [agentPolicyName(name), network.held.agents],
  ];
};

/** Object names that this cluster needs and that another owner has, each as a sentence. */
export function conflicts(o: ClusterFacts): readonly string[] {
  const { name } = identity(o.cluster);
  const held = (kind: string, object: string, holding: ReadHolding<unknown>): readonly string[] =>
    holding.is === 'foreign' ? [`${kind} ${object} exists and belongs to ${holding.owner}`] : [];
  return [
    ...held('Service', headlessServiceName(name), o.services.headless),
    ...held('Service', clientServiceName(name), o.services.client),
    ...(wantsPdb(o.cluster) ? held('PodDisruptionBudget', pdbName(name), o.pdb) : []),
    ...heldPolicies(o).flatMap(([policy, holding]) => held('NetworkPolicy', policy, holding)),
    ...(isFormed(o) ? [] : held('EtcdMember', seedName(o.cluster), o.seed)),
  ];
}

/** Objects that could not be read, each as a sentence: whether they match the spec is unknown. */
export function unreadableObjects(o: ClusterFacts): readonly string[] {
  const { cluster, services, pdb } = o;
  const { name } = identity(cluster);
  return [
    ...unreadObject('Service', headlessServiceName(name), services.headless),
    ...unreadObject('Service', clientServiceName(name), services.client),
    ...unreadObject('PodDisruptionBudget', pdbName(name), pdb),
    ...heldPolicies(o).flatMap(([policy, holding]) => unreadObject('NetworkPolicy', policy, holding)),
  ];
}

/** The message when a member responds with another cluster ID than the recorded one, or `undefined`. */
export function clusterIdMismatch(o: ClusterFacts): string | undefined {
  const ours = o.cluster.status?.clusterID;
  return ours === undefined || o.etcd.is !== 'answers' || o.etcd.clusterID === ours
    ? undefined
    : `a member responds with etcd cluster ID ${o.etcd.clusterID}, but status.clusterID is ${ours}: the operator changes nothing. Check whether another cluster uses the IP address of a member`;
}
