/** The calls of the cluster controller other than writes of Kubernetes objects: a closed union that `execute.ts` carries out. */
import type { NamedCall } from '../../runtime/plan.ts';
import type { AtMembers, CredentialsCall } from './credentials/calls.ts';

export type EtcdChange =
  | { readonly name: 'addLearner'; readonly peerURL: string }
  | { readonly name: 'promote'; readonly id: string }
  | { readonly name: 'remove'; readonly id: string }
  /** Sent to the leader only. */
  | { readonly name: 'moveLeader'; readonly to: string }
  /** etcd rewrites its data for this minor, such as `3.6.0`, so that members can be started with it. */
  | { readonly name: 'enableDowngrade'; readonly version: string }
  | { readonly name: 'cancelDowngrade' }
  /** Removes the history up to this revision. */
  | { readonly name: 'compact'; readonly revision: number }
  | { readonly name: 'disarm'; readonly alarm: 'corrupt' | 'noSpace'; readonly id: string };

/** Endpoints and member ids were read from etcd in the same reconcile. */
export type EtcdCall = NamedCall &
  EtcdChange &
  AtMembers & {
    readonly is: 'etcd';
    /** `namespace/name` of the cluster. */
    readonly cluster: string;
  };

/** Sent to this member only, and not waited for. */
export type DefragmentCall = NamedCall &
  Pick<AtMembers, 'clusterID' | 'hosts'> & {
    readonly is: 'defragment';
    readonly name: 'defragment';
    /** `namespace/name` of the cluster. */
    readonly cluster: string;
    readonly endpoint: string;
    /** Distinguishes it from every other request: see `requestOf`. */
    readonly request: string;
    readonly timeoutMs: number;
  };

export type ClusterCall = EtcdCall | DefragmentCall | CredentialsCall;

/** Every healthy voter has refused a membership change, because it counts too few of its peers as active. */
export const UNHEALTHY_CLUSTER = 'unhealthyCluster';
