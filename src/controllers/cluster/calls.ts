/** The calls of the cluster controller other than writes of Kubernetes objects: a closed union that `execute.ts` carries out. No call carries a key or a password. */
import type { SecretAction } from '../../access/evaluate/view.ts';
import type { Identity } from '../../domain/ownership.ts';
import type { NamedCall } from '../../runtime/plan.ts';

/** The members that are called. */
interface AtMembers {
  readonly clusterID: string;
  /** Tried in this order. */
  readonly endpoints: readonly string[];
  /** By endpoint, the DNS name that the served certificate must have. */
  readonly hosts: Readonly<Record<string, string>>;
}

export type EtcdChange =
  | { readonly name: 'addLearner'; readonly peerURL: string }
  | { readonly name: 'promote'; readonly id: string }
  | { readonly name: 'remove'; readonly id: string }
  /** Sent to the leader only. */
  | { readonly name: 'moveLeader'; readonly to: string }
  | { readonly name: 'disarmCorrupt'; readonly id: string };

/** Endpoints and member ids were read from etcd in the same reconcile. */
export type EtcdCall = NamedCall &
  EtcdChange &
  AtMembers & {
    readonly is: 'etcd';
    /** `namespace/name` of the cluster. */
    readonly cluster: string;
  };

/** The steps that enable auth and set the root password, in this order. */
export type RootPasswordStep = 'intendPassword' | 'makeRoot' | 'enableAuth' | 'changePassword' | 'provePassword';

export interface RootPasswordCall extends NamedCall, AtMembers {
  readonly is: 'rootPassword';
  readonly name: RootPasswordStep;
  readonly cluster: Identity;
}

/** The target is the Secret that is written or deleted. */
export interface SecretCall extends NamedCall {
  readonly is: 'secret';
  readonly name: SecretAction | 'deleteCABundle';
  readonly cluster: Identity;
}

export type ClusterCall = EtcdCall | RootPasswordCall | SecretCall;

/** Every healthy voter has refused a membership change, because it counts too few of its peers as active. */
export const UNHEALTHY_CLUSTER = 'unhealthyCluster';
