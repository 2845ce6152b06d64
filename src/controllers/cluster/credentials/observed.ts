/** The facts that the credentials chain decides on, and the questions about them that its rules share. */

import type { CertificatesView, PasswordView } from '../../../access/evaluate/view.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type EtcdPortName, trustName } from '../../../api/names.ts';
import type { Certificate, CertificateRequest } from '../../../domain/cert-manager.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import type { ReadHolding } from '../../../domain/unread.ts';
import type { Upkeep } from '../../../runtime/plan.ts';
import type { AtMembers, CredentialsCall } from './calls.ts';
import type { LoadedBundle, MountingPod } from './state.ts';

/** The Certificates that the cluster requests from cert-manager, and their state. */
export type Issuance =
  /** The CRDs of cert-manager are not installed. */
  | { readonly is: 'missing' }
  /** The cache of Certificates has not synced yet. */
  | { readonly is: 'unknown' }
  | { readonly is: 'there'; readonly certificates: readonly CertificateHolding[] };

export interface CertificateHolding {
  readonly wanted: Certificate;
  readonly holding: ReadHolding<Certificate>;
  /** The pending CertificateRequest; read only while a Certificate is being issued. */
  readonly request?: CertificateRequest;
}

/** What `observe` gathers for the chain alone. */
export interface GatheredCredentials {
  readonly certificates: CertificatesView;
  /** Set only for clusters that request certificates from cert-manager. */
  readonly issuance?: Issuance;
  /** The root password, if the spec enables auth. */
  readonly password?: PasswordView | undefined;
  /** `on`: auth is enabled and the operator is authenticated as root; `required`: auth is enabled and the operator is not authenticated. Asked only where a rule needs it. */
  readonly auth?: 'off' | 'on' | 'required' | undefined;
}

export interface CredentialsFacts extends GatheredCredentials {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly cluster: EtcdCluster;
  /** The cluster ID is recorded. */
  readonly formed: boolean;
  /** Of the accepted target; 0 while the cluster is paused. */
  readonly replicas: number;
  /** The Pod of each EtcdMember. */
  readonly pods: readonly MountingPod[];
  /** How etcd responded to the request for its member list. */
  readonly etcd: 'notAsked' | 'answers' | 'unreachable' | 'authRequired' | 'authRejected';
  /** Healthy voters, the leader first. */
  readonly voters: AtMembers;
  /** etcd lists one member only. */
  readonly single: boolean;
  /** Every member that has started is healthy: one that lags would serve clients without auth until it catches up. */
  readonly allHealthy: boolean;
}

export interface CredentialsObserved extends CredentialsFacts {
  /** The cluster token is recorded, or is in the same write: nothing is recorded before it. */
  readonly hasToken: boolean;
  /** No membership change is under way. */
  readonly atRest: boolean;
  /** Why the next outdated member is not restarted now. */
  readonly restartBlockedBy?: Blocked | undefined;
}

/** The status fields that only the chain latches. */
export type CredentialsLatch = Pick<EtcdClusterStatus, 'trust' | 'authEnabled'>;
export type CredentialsUpkeep = Upkeep<CredentialsLatch, CredentialsCall>;
export type Contributed = CredentialsUpkeep | undefined;

/** Then nothing is decided by what was read before: Secrets may have changed since. */
export const isUnread = ({ certificates }: GatheredCredentials): boolean => certificates.unreadable !== undefined;

/** Not bootstrapped, and not to be: nothing is issued for it. */
export const isNotStarted = ({ formed, replicas }: CredentialsFacts): boolean => !formed && replicas === 0;

/** The recorded CA bundle of a port; none before the first one is recorded. */
export function wantedBundles(
  { cluster: { metadata, status } }: CredentialsFacts,
  port: EtcdPortName,
): readonly LoadedBundle[] {
  const digest = status?.trust?.[port];
  return digest === undefined ? [] : [{ port, bundleSecret: trustName(metadata.name ?? '', port, digest) }];
}
