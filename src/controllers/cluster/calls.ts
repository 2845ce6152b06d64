/** What the plans of the cluster controller do outside Kubernetes objects: a closed union, carried out by `execute.ts`. No call carries a key or a password. */
import type { SecretAction } from '../../access/evaluate/view.ts';
import type { Identity } from '../../domain/ownership.ts';
import type { NamedCall } from '../../runtime/plan.ts';

/** Which members to ask, and as what. */
interface AtMembers {
  readonly clusterID: string;
  /** In this order. */
  readonly endpoints: readonly string[];
  /** By endpoint, the name that the certificate there must have. */
  readonly hosts: Readonly<Record<string, string>>;
}

export type EtcdChange =
  | { readonly name: 'addLearner'; readonly peerURL: string }
  | { readonly name: 'promote'; readonly id: string }
  | { readonly name: 'remove'; readonly id: string }
  /** Asked of the leader only. */
  | { readonly name: 'moveLeader'; readonly to: string }
  | { readonly name: 'disarmCorrupt'; readonly id: string };

/** Which member is asked, and about which one, was read from etcd in the same reconcile. */
export type EtcdCall = NamedCall &
  EtcdChange &
  AtMembers & {
    readonly is: 'etcd';
    /** `namespace/name` of the cluster. */
    readonly cluster: string;
  };

/** What is done about the user root, in this order. */
export type RootPasswordStep = 'intendPassword' | 'makeRoot' | 'enableAuth' | 'changePassword' | 'provePassword';

export interface RootPasswordCall extends NamedCall, AtMembers {
  readonly is: 'rootPassword';
  readonly name: RootPasswordStep;
  readonly cluster: Identity;
}

/** The target is the Secret that is written or deleted. */
export interface SecretCall extends NamedCall {
  readonly is: 'secret';
  readonly name: SecretAction | 'discard';
  readonly cluster: Identity;
}

export type ClusterCall = EtcdCall | RootPasswordCall | SecretCall;

/** Every healthy voter has refused a membership change, because it takes too few of its peers for active. */
export const UNHEALTHY_CLUSTER = 'unhealthyCluster';
