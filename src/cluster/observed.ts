/** The facts that a decision about one EtcdCluster is made from, and the questions that rules ask of them. */
import { findCondition } from '../api/conditions.ts';
import { targetOf } from '../api/defaults.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { Target } from '../api/etcd-cluster-status.ts';
import { DATA_LOST, type EtcdMember } from '../api/etcd-member.ts';
import { budgetName, clientServiceName, headlessServiceName, memberName, peerURL } from '../api/names.ts';
import type { Holding } from '../api/ownership.ts';
import type { ImagePolicy } from '../api/security.ts';
import type { PodDisruptionBudget, Service } from '../gen/kube.ts';

/** The Pod of a member, as far as the cluster cares. */
export type PodView =
  | { readonly is: 'absent' }
  | { readonly is: 'present'; readonly ip?: string; readonly ready: boolean; readonly startedAt?: number };

/** What a member's own etcd said in this pass. Ids are as tools print them; no leader is `undefined`. */
export interface SelfReport {
  readonly id: string;
  readonly clusterID: string;
  readonly leader: string | undefined;
  readonly isLearner: boolean;
  readonly version: string;
  readonly alarms: readonly string[];
  readonly databaseBytes: number;
}

export interface MemberView {
  readonly object: EtcdMember;
  readonly pod: PodView;
  /** `undefined`: not asked, or it did not answer. */
  readonly self?: SelfReport | undefined;
}

export interface EtcdMemberEntry {
  readonly id: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly isLearner: boolean;
}

/** What etcd itself said in this pass. */
export type EtcdView =
  | { readonly is: 'notAsked' }
  | { readonly is: 'silent'; readonly why: string }
  | { readonly is: 'answers'; readonly clusterID: string; readonly members: readonly EtcdMemberEntry[] };

export interface Observed {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** What the API server said when it refused a step of the last pass. */
  readonly refusal: string | undefined;
  readonly cluster: EtcdCluster;
  readonly services: { readonly headless: Holding<Service>; readonly client: Holding<Service> };
  /** Looked at only once the cluster exists: before that there is nothing to protect. */
  readonly budget: Holding<PodDisruptionBudget>;
  /** Whoever has the name of the first member. */
  readonly seed: Holding<EtcdMember>;
  /** Controlled by this cluster, by name; those being deleted included. */
  readonly members: readonly MemberView[];
  readonly etcd: EtcdView;
  /** Which repositories the administrator allows. */
  readonly images: ImagePolicy;
}

/** The first name that a cluster gives out is the seed's. */
export const SEED = 1;

export const identity = (
  cluster: EtcdCluster,
): { readonly name: string; readonly namespace: string; readonly uid: string } => ({
  name: cluster.metadata.name ?? '',
  namespace: cluster.metadata.namespace ?? '',
  uid: cluster.metadata.uid ?? '',
});

export const seedName = (cluster: EtcdCluster): string => {
  const { name, uid } = identity(cluster);
  return memberName(name, uid, SEED);
};

export const isFormed = (o: Observed): boolean => o.cluster.status?.clusterID !== undefined;
export const wanted = (o: Observed): Target => targetOf(o.cluster.spec, o.cluster.status);

export const readyCondition = (member: EtcdMember) => findCondition(member.status?.conditions, 'Ready');
export const isStaying = (m: MemberView): boolean => m.object.metadata.deletionTimestamp === undefined;
export const isVoter = (m: MemberView): boolean => m.object.status?.isVoter === true && isStaying(m);
export const isReadyVoter = (m: MemberView): boolean =>
  isVoter(m) && readyCondition(m.object)?.status === 'True' && m.pod.is === 'present' && m.pod.ready;
const hasLostData = (m: MemberView): boolean => readyCondition(m.object)?.reason === DATA_LOST;

/** No copy of the data is left: nothing that the operator does can bring it back. */
export const isLost = (o: Observed): boolean => isFormed(o) && o.members.every(hasLostData);
export const brokenMembers = (o: Observed): number => o.members.filter(hasLostData).length;

export const wantsBudget = (cluster: EtcdCluster): boolean => cluster.spec.podDisruptionBudget?.enabled !== false;

/** Names that we need and somebody else has, each as a sentence. */
export function conflicts(o: Observed): readonly string[] {
  const { name } = identity(o.cluster);
  const held = (kind: string, object: string, holding: Holding<unknown>): readonly string[] =>
    holding.is === 'foreign' ? [`${kind} ${object} exists and belongs to ${holding.owner}`] : [];
  return [
    ...held('Service', headlessServiceName(name), o.services.headless),
    ...held('Service', clientServiceName(name), o.services.client),
    ...(wantsBudget(o.cluster) ? held('PodDisruptionBudget', budgetName(name), o.budget) : []),
    ...held('EtcdMember', seedName(o.cluster), o.seed),
  ];
}

/** Whether an entry of etcd's list is this member. A member that never started has no name yet. */
export const isEntryOf = (entry: EtcdMemberEntry, member: EtcdMember): boolean => {
  const { name = '', namespace = '' } = member.metadata;
  return entry.name === name || entry.peerURLs.includes(peerURL(name, member.spec.clusterName, namespace));
};
