/** The facts that a decision about one EtcdCluster is made from, and the questions that rules ask of them. */

import type { CertificatesView, Mount, PasswordView } from '../../access/evaluate/view.ts';
import { findCondition } from '../../api/conditions.ts';
import { targetOf } from '../../api/defaults.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus, Target } from '../../api/etcd-cluster-status.ts';
import { DATA_INCONSISTENT, type EtcdMember, EVIDENCE, NO_DATA, NO_READABLE_DATA } from '../../api/etcd-member.ts';
import type { EtcdSnapshotSchedule } from '../../api/etcd-snapshot-schedule.ts';
import { budgetName, clientServiceName, type EtcdPortName, headlessServiceName, memberName } from '../../api/names.ts';
import type { ImagePolicy } from '../../api/security.ts';
import type { Certificate, CertificateRequest } from '../../domain/cert-manager.ts';
import { addedPeerURL } from '../../domain/member-address.ts';
import { type Holding, identity } from '../../domain/ownership.ts';
import type { PersistentVolumeClaim, PodDisruptionBudget, Service } from '../../gen/kube.ts';
import { type Decision, SERVER_REFUSES } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import type { RestoreView } from './restore.ts';

/** The Pod of a member, as far as the cluster cares. */
export type PodView =
  | { readonly is: 'absent' }
  | {
      readonly is: 'present';
      readonly uid?: string;
      /** It is being deleted: its etcd may answer until it ends. */
      readonly terminating?: boolean;
      readonly ip?: string;
      readonly ready: boolean;
      readonly startedAt?: number;
      /** Since when the present process of etcd runs. */
      readonly runningSince?: number;
      /** Its etcd has ended before, in this Pod. */
      readonly restarted?: boolean;
      /** How many learners its etcd lets the cluster have. */
      readonly maxLearners: number;
      readonly tls?: Readonly<Partial<Record<EtcdPortName, Mount>>>;
      /** Only of a seed that begins with a snapshot. */
      readonly restore?: RestoreView;
      /** Since when clients are led to others, because it is about to be started again. */
      readonly drainingSince?: number;
    };

/** What a member's own etcd said in this pass. Ids are as tools print them; no leader is `undefined`. */
export interface SelfReport {
  readonly id: string;
  readonly clusterID: string;
  readonly leader: string | undefined;
  readonly isLearner: boolean;
  readonly version: string;
  readonly alarms: readonly string[];
  readonly databaseBytes: number;
  readonly term: number;
  /** How much of the log it has carried out. */
  readonly applied: number;
  /** Of all keys at one revision; asked only where somebody says that data is corrupt. Equal texts mean equal data. */
  readonly hash?: string;
}

export interface MemberView {
  readonly object: EtcdMember;
  readonly pod: PodView;
  /** Its PersistentVolumeClaim, where the cache has one. */
  readonly pvc?: 'present' | 'terminating';
  /** `undefined`: not asked, or it did not answer. */
  readonly self?: SelfReport | undefined;
  /** At its address another member of this cluster answers, or this one under an id that is not recorded. */
  readonly answersAs?: string;
}

export interface EtcdMemberEntry {
  readonly id: string;
  /** Empty until the member has started. */
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly isLearner: boolean;
}

/** What etcd itself said in this pass. */
export type EtcdView =
  | { readonly is: 'notAsked' }
  | {
      readonly is: 'silent';
      readonly why: string;
      /** It wants a log-in, and there was none; or it did not accept any password that there is. */
      readonly login?: 'demanded' | 'rejected';
    }
  | {
      readonly is: 'answers';
      readonly clusterID: string;
      readonly members: readonly EtcdMemberEntry[];
      /** The members have not agreed on the version of their cluster yet. Asked only where it keeps others from joining. */
      readonly unversioned?: boolean;
      /** Whether a log-in is needed: on, and the operator is in as root; wanted, and it is not. Asked only where it can matter. */
      readonly auth?: 'off' | 'on' | 'demanded';
      /** Alarms of all members that there ever were. */
      readonly alarms: readonly { readonly id: string; readonly alarm: string }[];
    };

/** An object that is looked for by name; `unknown` when it could not be read, so that it is neither made nor corrected. */
export type Looked<T> = Holding<T> | { readonly is: 'unknown'; readonly why: string };

/** What cert-manager was asked for, and how far it has come. */
export type Issuance =
  /** The API server does not know its kinds. */
  | { readonly is: 'missing' }
  /** Nobody has told yet which Certificates there are. */
  | { readonly is: 'unknown' }
  | { readonly is: 'there'; readonly certificates: readonly CertificateHolding[] };

export interface CertificateHolding {
  readonly wanted: Certificate;
  readonly holding: Looked<Certificate>;
  /** What is before the issuer now; looked for only while something is to be issued. */
  readonly request?: CertificateRequest;
}

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Who refused a step of the last pass, and why, as a sentence. */
  readonly refusal: string | undefined;
  /** Milliseconds since 1970: since then every healthy voter refuses a membership change as "unhealthy cluster". */
  readonly refusedSince?: number;
  readonly cluster: EtcdCluster;
  readonly services: { readonly headless: Looked<Service>; readonly client: Looked<Service> };
  /** Looked at only once the cluster exists: before that there is nothing to protect. */
  readonly pdb: Looked<PodDisruptionBudget>;
  /** Whoever has the name of the first member. */
  readonly seed: Holding<EtcdMember>;
  /** Controlled by this cluster, or to be adopted by it, by name; those being deleted included. */
  readonly members: readonly MemberView[];
  readonly etcd: EtcdView;
  /** Volumes that outlived their members. */
  readonly quarantined: readonly PersistentVolumeClaim[];
  /** PVCs with the label of this cluster; looked up only when the API server has no EtcdMember of it. */
  readonly leftVolumes?: readonly string[];
  /** Which repositories the administrator allows. */
  readonly images: ImagePolicy;
  readonly certificates: CertificatesView;
  /** Only of clusters that ask cert-manager for certificates. */
  readonly issuance?: Issuance;
  /** That are about this cluster. */
  readonly schedules: readonly EtcdSnapshotSchedule[];
  /** Of root, where clients are to log in. */
  readonly password?: PasswordView | undefined;
}

/** How a rule answers: `undefined` means that the case is not its own. */
export type ClusterDecision = Decision<EtcdClusterStatus, ClusterCall>;
export type Decided = ClusterDecision | undefined;

/** The first name that a cluster gives out is the seed's. */
export const SEED = 1;

export const seedName = (cluster: EtcdCluster): string => {
  const { name, uid } = identity(cluster);
  return memberName(name, uid, SEED);
};

export const isFormed = (o: Observed): boolean => o.cluster.status?.clusterID !== undefined;
/** What the server refuses must not keep members of a cluster that exists from being repaired: it is tried again last. */
export const isRefused = (o: Observed): boolean => isFormed(o) && o.refusal?.startsWith(SERVER_REFUSES) === true;
export const wanted = (o: Observed): Target => targetOf(o.cluster.spec, o.cluster.status);
export const desired = (o: Observed): number => wanted(o).replicas;

export const nameOf = (m: MemberView): string => m.object.metadata.name ?? '';
export const createdAt = (m: MemberView): number => Date.parse(m.object.metadata.creationTimestamp ?? '');
export const readyCondition = (member: EtcdMember) => findCondition(member.status?.conditions, 'Ready');
export const isNotBeingDeleted = (m: MemberView): boolean => m.object.metadata.deletionTimestamp === undefined;
export const isDormant = (m: MemberView): boolean => m.object.spec.dormant === true;
export const isVoter = (m: MemberView): boolean => m.object.status?.isVoter === true && isNotBeingDeleted(m);
export const isReadyVoter = (m: MemberView): boolean =>
  isVoter(m) && readyCondition(m.object)?.status === 'True' && m.pod.is === 'present' && m.pod.ready;
/** Its etcd has run as part of the cluster: its volume is not to be begun anew. */
export const hasJoined = (m: MemberView): boolean => m.object.status?.memberID !== undefined;

/** Made by the earlier operator before etcd was told of it. */
export const isPending = (m: MemberView): boolean => m.object.spec.initialCluster === '';

/** Its etcd ends at every start, because its data differs from that of a peer. */
export const isInconsistent = (m: MemberView): boolean => readyCondition(m.object)?.reason === DATA_INCONSISTENT;

/** Why the member will not come back by itself; what it says about itself is not older than its Pod. */
export function evidence(m: MemberView): { readonly reason: string; readonly message: string } | undefined {
  const ready = readyCondition(m.object);
  const known: readonly string[] = Object.values(EVIDENCE);
  return ready && known.includes(ready.reason) ? { reason: ready.reason, message: ready.message } : undefined;
}
/** A member that responds has its data, whatever its condition still says. */
export const hasNoReadableData = (m: MemberView): boolean =>
  m.self === undefined && NO_READABLE_DATA.includes(evidence(m)?.reason ?? '');
export const hasNoData = (m: MemberView): boolean =>
  hasNoReadableData(m) && NO_DATA.includes(evidence(m)?.reason ?? '');
export const brokenMembers = (o: Observed): number => o.members.filter((m) => evidence(m) !== undefined).length;

/** What etcd says about its members, believed only when it speaks for this cluster. */
export const entriesOf = (o: Observed): readonly EtcdMemberEntry[] | undefined =>
  o.etcd.is === 'answers' && o.etcd.clusterID === o.cluster.status?.clusterID ? o.etcd.members : undefined;

/** Whether an entry of etcd's list is this member. A member that never started has no name yet. */
export const isEntryOf = (entry: EtcdMemberEntry, member: EtcdMember): boolean => {
  const id = member.status?.memberID;
  if (id !== undefined) return entry.id === id;
  return entry.name === member.metadata.name || entry.peerURLs.includes(addedPeerURL(member));
};
export const entryOf = (o: Observed, m: MemberView): EtcdMemberEntry | undefined =>
  entriesOf(o)?.find((entry) => isEntryOf(entry, m.object));
export const memberOf = (o: Observed, entry: EtcdMemberEntry): MemberView | undefined =>
  o.members.find((m) => isEntryOf(entry, m.object));

/**
 * It has told the others its name, and runs since then. It votes and copies as well as any other, although it may not answer
 * for seconds: where its name came to it with a snapshot, etcd 3.6 takes it for untold, and tells it again before it serves.
 */
export const participates = (o: Observed, m: MemberView): boolean => {
  const runs = m.pod.is === 'present' && m.pod.runningSince !== undefined && m.pod.restarted !== true;
  return runs && isNotBeingDeleted(m) && !hasJoined(m) && (entryOf(o, m)?.name ?? '') !== '';
};

export const wantsPdb = (cluster: EtcdCluster): boolean => cluster.spec.podDisruptionBudget?.enabled !== false;

/** Names that we need and somebody else has, each as a sentence. */
export function conflicts(o: Observed): readonly string[] {
  const { name } = identity(o.cluster);
  const held = (kind: string, object: string, holding: Looked<unknown>): readonly string[] =>
    holding.is === 'foreign' ? [`${kind} ${object} exists and belongs to ${holding.owner}`] : [];
  return [
    ...held('Service', headlessServiceName(name), o.services.headless),
    ...held('Service', clientServiceName(name), o.services.client),
    ...(wantsPdb(o.cluster) ? held('PodDisruptionBudget', budgetName(name), o.pdb) : []),
    ...(isFormed(o) ? [] : held('EtcdMember', seedName(o.cluster), o.seed)),
  ];
}

/** Objects that could not be read, each as a sentence: whether they are as they should be is not known. */
export function unreadableObjects(o: Observed): readonly string[] {
  const { name } = identity(o.cluster);
  const told = (kind: string, object: string, looked: Looked<unknown>): readonly string[] =>
    looked.is === 'unknown' ? [`${kind} ${object} cannot be read: ${looked.why}`] : [];
  const requested = o.issuance?.is === 'there' ? o.issuance.certificates : [];
  return [
    ...told('Service', headlessServiceName(name), o.services.headless),
    ...told('Service', clientServiceName(name), o.services.client),
    ...told('PodDisruptionBudget', budgetName(name), o.pdb),
    ...requested.flatMap(({ wanted, holding }) => told('Certificate', wanted.metadata.name ?? '', holding)),
  ];
}

/** A member answers for another etcd cluster than the recorded one; `undefined` when none does. */
export function clusterIdMismatch(o: Observed): string | undefined {
  const ours = o.cluster.status?.clusterID;
  return ours === undefined || o.etcd.is !== 'answers' || o.etcd.clusterID === ours
    ? undefined
    : `a member answers for etcd cluster ${o.etcd.clusterID}, but this cluster is ${ours}: nothing is changed`;
}
