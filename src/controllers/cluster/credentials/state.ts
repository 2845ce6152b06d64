/** All that membership, restarts and the status may know about credentials: the one value that the chain hands on. */
import type { Mount } from '../../../access/evaluate/view.ts';
import type { EtcdPortName } from '../../../api/names.ts';
import type { Blocked } from '../../../domain/disruption.ts';

/** Reason of a CA rotation, in conditions and Events. */
export const ROTATING = 'RotatingCA';

export interface Waiting extends Blocked {
  /** It may last, until a Secret is created or corrected. Otherwise it is being done now. */
  readonly waits: boolean;
}

/** The Secret with the CA bundle that members have loaded, or must have loaded, on a port. */
export interface LoadedBundle {
  readonly port: EtcdPortName;
  readonly bundleSecret: string;
}

export interface CredentialsState {
  /** Why the first member is not created yet. While Secrets cannot be read, also why it is not recreated. */
  readonly bootstrap: { readonly blockedBy: Waiting | undefined };
  /** Why no member is added: its Pod could not mount its Secrets; or auth is enabled first, while only one member serves clients. */
  readonly join: { readonly blockedBy: Waiting | undefined };
  /** Why no member takes the place of one that is removed. */
  readonly replace: { readonly blockedBy: string | undefined };
  /** Why a Pod that is deleted might hang in ContainerCreating when it is recreated. */
  readonly recreate: { readonly blockedBy: string | undefined };
  /** A member that has loaded another bundle restarts. */
  readonly restart: readonly LoadedBundle[];
  /** The CA bundles of members that no new connection reaches before they restart: CAs or certificates have expired. */
  readonly expired: readonly LoadedBundle[];
  /** The progress of a CA rotation. */
  readonly rotating?: string | undefined;
  /** Why the operator cannot authenticate to etcd. */
  readonly locked: Blocked | undefined;
  /** What is missing until auth is as the spec asks. */
  readonly unsecured: Waiting | undefined;
  /** Secrets that could not be read. */
  readonly unread: Blocked | undefined;
  /** Certificates that could not be read, each as a sentence. */
  readonly unreadCertificates: readonly string[];
}

/** What the chain reads of a member's Pod. */
export interface MountingPod {
  readonly is: 'absent' | 'present';
  readonly terminating?: boolean;
  readonly tls?: Readonly<Partial<Record<EtcdPortName, Mount>>>;
}

/** Whether it was started with this CA bundle. */
export const loads = ({ tls }: MountingPod, { port, bundleSecret }: LoadedBundle): boolean =>
  tls?.[port]?.bundle === bundleSecret;

/** etcd loads its CA bundle only when it starts. */
export const loadsOther = ({ tls }: MountingPod, { port, bundleSecret }: LoadedBundle): boolean =>
  tls?.[port] !== undefined && tls[port].bundle !== bundleSecret;
