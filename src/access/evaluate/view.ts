/** What is known about the certificates and the password of a cluster: plain data for decisions. No key, no certificate and no password is part of it. */

import type { EtcdPortName } from '../../api/names.ts';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import { type Finding, isFatal } from '../../pki/findings.ts';

/** What is to be written, if anything. */
export type SecretAction =
  /** A new authority into an empty Secret. */
  | 'found'
  /** The successor of an authority, next to it. */
  | 'prepare'
  /** The successor takes its place: all members trust it. */
  | 'succeed'
  /** Whom members trust, into a Secret that is never changed. */
  | 'bundle'
  /** A certificate, signed by the authority. */
  | 'issue'
  /** What the user's Secret has, into the one that members mount. */
  | 'copy'
  /** The same for members that run: they take it already. */
  | 'copyLeaf'
  /** Only whom to trust: those who connect learn of a new authority before anybody shows its certificates. */
  | 'publish';

export interface CAView {
  readonly secret: string;
  readonly part: EtcdPortName;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<SecretAction, 'found' | 'prepare' | 'succeed'>;
  /** It has a successor that waits to be trusted by all. */
  readonly successor?: boolean;
}

export interface CertificateView {
  readonly need: CertificateRequirement;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<SecretAction, 'issue' | 'copy' | 'copyLeaf' | 'publish'>;
  /** When what members show, or will show, stops being valid: in milliseconds since 1970, of what can be read. */
  readonly notAfter?: number;
  /** When its successor is issued, in milliseconds since 1970. */
  readonly renewAt?: number;
  /** Members can mount it, or have it mounted. */
  readonly usable: boolean;
}

/** A Secret that says whom members trust, and is there, or is to be. */
export interface BundleView {
  readonly secret: string;
  readonly part: EtcdPortName;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<SecretAction, 'bundle'>;
}

export interface PortTrustView {
  readonly part: EtcdPortName;
  /** Members read it when they start. */
  readonly loadedAtStart: boolean;
  /** Digests: what those get that start from now on, and where all of this is to lead. */
  readonly recorded?: string;
  readonly target?: string;
  /** What is to be recorded next. Its Secret is there. */
  readonly next?: { readonly digest: string; readonly step: 'begin' | 'adopt' | 'widen' | 'narrow' };
  /** Those that start from now on trust all of the target. */
  readonly trusted: boolean;
  /** Secrets with what is shown on this port and does not lead to the target. */
  readonly notReissued: readonly string[];
  /** When everybody who mounts a Secret of this port has what is in it, in milliseconds since 1970. */
  readonly reachedAt?: number;
  /** A rotation that somebody has asked for and that was begun: to be recorded. */
  readonly requestedRotation?: string;
}

/** What a Pod mounts for one of its ports. */
export interface Mount {
  /** The Secret with the certificate. */
  readonly leaf: string;
  /** The Secret with whom its etcd trusts since it started. A Pod that mounts both together does not say it. */
  readonly bundle?: string;
}

/** Secrets that could not be read. What was read before stands, so that members are still reached; nothing is written on it. */
export interface Unreadable {
  /** Names, and why the first of them could not be read. */
  readonly secrets: readonly string[];
  readonly why: string;
  /** One of them has the root password. */
  readonly password: boolean;
  /** They were read before, by this process. Otherwise nothing is known, and members cannot be reached. */
  readonly judged: boolean;
  /** When they are read again, in milliseconds since 1970. */
  readonly retryAt: number;
}

export interface CertificatesView {
  readonly cas: readonly CAView[];
  readonly certificates: readonly CertificateView[];
  readonly bundles: readonly BundleView[];
  readonly trusts: readonly PortTrustView[];
  /** Of the Secrets with trust of before, those that are still there. */
  readonly kept: readonly string[];
  /** Members that still show an earlier certificate. */
  readonly stale?: readonly string[];
  /** Ports on which every member has shown what it was given. */
  readonly proven?: readonly EtcdPortName[];
  /** Everything else is from an earlier read, or empty. */
  readonly unreadable?: Unreadable;
}

/** Where that is which the operator reaches members with: names of Secrets. */
export interface Sources {
  /** Its `ca.crt` says whom to trust. Absent where nothing is encrypted, and as long as nobody can be trusted. */
  readonly ca?: string;
  /** Its `tls.crt` and `tls.key` are shown; absent where nothing is to be shown. */
  readonly pair?: string;
  /** Its `password` is the one of root; absent where nobody has to log in, and as long as there is none. */
  readonly root?: string;
}

/** A certificate is missing or wrong, or something is to be written: it is looked at again after so long. */
export const UNSETTLED_MS = 10_000;
export const isUnsettled = ({
  cas: authorities,
  certificates,
  bundles,
  trusts,
  stale: behind = [],
}: CertificatesView): boolean =>
  behind.length > 0 ||
  trusts.some(({ recorded, target }) => recorded !== undefined && target !== undefined && recorded !== target) ||
  [...authorities, ...certificates, ...bundles].some(
    ({ findings, todo }) => todo !== undefined || findings.some(isFatal),
  );

/** The earliest time at which a certificate is to be renewed. */
export const renewalOf = ({ certificates }: CertificatesView): number | undefined => {
  const times = certificates.flatMap(({ renewAt }) => renewAt ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
};

/** What is wrong with what was given, or in the way. */
export interface PasswordProblem {
  readonly reason: string;
  readonly message: string;
}

/** The password of root, as far as a decision needs it. */
export interface PasswordView {
  readonly problem?: PasswordProblem;
  /** What the operator has kept: nothing; what was given, or nothing is given; another; one that it was about to set. */
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
