/** The state of the certificates and of the root password of a cluster: plain data for decisions. It never contains a key, a certificate or a password. */

import type { EtcdPortName } from '../../api/names.ts';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import type { Blocked } from '../../domain/disruption.ts';
import { type Finding, isFatal } from '../../pki/findings.ts';

/** The Secret write that is due, if any. */
export type SecretAction =
  /** A new CA, into a Secret that does not exist yet. */
  | 'createCA'
  /** The next CA, into the Secret of the current one (`next.crt`, `next.key`). */
  | 'createNextCA'
  /** The next CA replaces the current one: all members trust it. */
  | 'promoteNextCA'
  /** The CA bundle that members load, into an immutable Secret. */
  | 'writeCABundle'
  /** A certificate that the managed CA signs. */
  | 'issueCertificate'
  /** The user's Secret, into the one that members mount. */
  | 'copySecret'
  /** The user's certificate, for members that run: all of them accept it already. */
  | 'copyCertificate'
  /** Only `ca.crt`: clients get a new CA before a member serves certificates that it has signed. */
  | 'publishCABundle';

export interface CAView extends Omit<BundleView, 'todo'> {
  readonly todo?: Extract<SecretAction, 'createCA' | 'createNextCA' | 'promoteNextCA'>;
  /** It has a next CA that not all members trust yet. */
  readonly successor?: boolean;
}

export interface CertificateView {
  readonly need: CertificateRequirement;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<SecretAction, 'issueCertificate' | 'copySecret' | 'copyCertificate' | 'publishCABundle'>;
  /** When the certificate that members serve, or will serve, expires: in milliseconds since 1970; absent when it cannot be parsed. */
  readonly notAfter?: number;
  /** When it is renewed, in milliseconds since 1970. */
  readonly renewAt?: number;
  /** Names that a new member needs, and the certificate that it would serve does not have. */
  readonly newMembersLack?: readonly string[];
  /** Members can mount it, or have mounted it. */
  readonly usable: boolean;
}

/** A Secret with a CA bundle, which exists or is to be created. */
export interface BundleView {
  readonly secret: string;
  readonly part: EtcdPortName;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<SecretAction, 'writeCABundle'>;
}

export interface PortTrustView {
  readonly part: EtcdPortName;
  /** etcd loads the CA bundle of this port only when it starts. */
  readonly loadedAtStart: boolean;
  /** Digests of CA bundles: the one that members which start now get, and the one after the CA rotation. */
  readonly recorded?: string;
  readonly target?: string;
  /** The digest to record next. Its Secret exists. */
  readonly next?: { readonly digest: string; readonly step: 'begin' | 'adopt' | 'widen' | 'replace' | 'narrow' };
  /** Members that start now trust every CA of the target. */
  readonly trusted: boolean;
  /** Secrets with certificates of this port that no CA of the target has signed. */
  readonly notReissued: readonly string[];
  /** The Secrets with the CA bundles of members that no new connection reaches on this port until they restart: CAs or certificates have expired. */
  readonly expired?: readonly string[];
  /** When the kubelets have updated the Secrets of this port in every Pod that mounts them, in milliseconds since 1970. */
  readonly reachedAt?: number;
  /** The value of the rotate-ca annotation whose CA rotation has started: to be recorded. */
  readonly requestedRotation?: string;
}

/** The Secrets that a Pod mounts for one of its ports. */
export interface Mount {
  /** The Secret with the certificate. */
  readonly leaf: string;
  /** The Secret with the CA bundle that etcd loaded when it started. Absent while it is not recorded for a Pod that names none. */
  readonly bundle?: string;
}

/** Secrets that could not be read. The operator still reaches members with what it read before, and writes nothing based on it. */
export interface Unreadable {
  /** Names, and the error of the first. */
  readonly secrets: readonly string[];
  readonly message: string;
  /** One of them has the root password. */
  readonly password: boolean;
  /** This process has read them before. Otherwise the operator cannot reach the members. */
  readonly judged: boolean;
  /** When the next read is due, in milliseconds since 1970. */
  readonly retryAt: number;
}

export interface CertificatesView {
  readonly cas: readonly CAView[];
  readonly certificates: readonly CertificateView[];
  readonly bundles: readonly BundleView[];
  readonly trusts: readonly PortTrustView[];
  /** The Secrets with previous CA bundles that still exist. */
  readonly kept: readonly string[];
  /** Members that still serve a previous certificate. */
  readonly stale?: readonly string[];
  /** Ports on which every member serves the certificate in its Secret. */
  readonly proven?: readonly EtcdPortName[];
  /** When set, everything else is from an earlier read, or empty. */
  readonly unreadable?: Unreadable;
}

/** Names of the Secrets that the operator connects to members with. */
export interface Sources {
  /** Its `ca.crt` is the CA bundle. Absent without TLS, and while there is no CA. */
  readonly ca?: string;
  /** Its `tls.crt` and `tls.key` are the client certificate; absent without mTLS. */
  readonly pair?: string;
  /** Its `password` is the root password; absent without auth, and while there is none. */
  readonly root?: string;
}

export const isUnsettled = ({ cas, certificates, bundles, trusts, stale = [] }: CertificatesView): boolean =>
  stale.length > 0 ||
  trusts.some(({ recorded, target }) => recorded !== undefined && target !== undefined && recorded !== target) ||
  [...cas, ...certificates, ...bundles].some(({ findings, todo }) => todo !== undefined || findings.some(isFatal));

/** The earliest time at which a certificate is to be renewed. */
export const renewalOf = ({ certificates }: CertificatesView): number | undefined => {
  const times = certificates.flatMap(({ renewAt }) => renewAt ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
};

/** The root password, as far as a decision needs it. */
export interface PasswordView {
  /** What is wrong with the root password Secret. */
  readonly problem?: Blocked;
  /** The operator's own copy: none; equal to the user's Secret, or that has none; different; or a next password that was about to be set. */
  readonly kept: 'nothing' | 'same' | 'another' | 'intended';
}

export const isPasswordUnsettled = (password: PasswordView | undefined): boolean =>
  password !== undefined && (password.problem !== undefined || password.kept !== 'same');

export const NO_CERTIFICATES: CertificatesView = {
  cas: [],
  certificates: [],
  bundles: [],
  trusts: [],
  kept: [],
};
