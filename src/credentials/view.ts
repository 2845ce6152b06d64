/** What is known about the certificates and the password of a cluster: plain data for decisions. No key, no certificate and no password is part of it. */
import type { CertificateNeed } from '../api/certificates.ts';
import { type Finding, isGrave } from '../pki/findings.ts';

/** What is to be written, if anything. */
export type Todo =
  /** A new authority into an empty Secret. */
  | 'found'
  /** A certificate, signed by the authority. */
  | 'issue'
  /** What the user's Secret has, into the one that members mount. */
  | 'copy'
  /** The same without ca.crt: members that run trust what they started with. */
  | 'copyLeaf';

export interface AuthorityView {
  readonly secret: string;
  readonly findings: readonly Finding[];
  readonly todo?: Extract<Todo, 'found'>;
}

export interface CertificateView {
  readonly need: CertificateNeed;
  readonly findings: readonly Finding[];
  readonly todo?: Exclude<Todo, 'found'>;
  /** When what members show, or will show, stops being valid: in milliseconds since 1970, of what can be read. */
  readonly notAfter?: number;
  /** When its successor is issued, in milliseconds since 1970. */
  readonly renewAt?: number;
  /** Digest of the authorities that a member trusts which starts on it. */
  readonly trust?: string;
  /** Members can mount it, or have it mounted. */
  readonly usable: boolean;
}

export interface CertificatesView {
  readonly authorities: readonly AuthorityView[];
  readonly certificates: readonly CertificateView[];
  /** Members that still show an earlier certificate to clients. */
  readonly behind?: readonly string[];
}

/** A certificate is missing or wrong, or something is to be written: it is looked at again after so long. */
export const UNSETTLED_MS = 10_000;
export const isUnsettled = ({ authorities, certificates, behind = [] }: CertificatesView): boolean =>
  behind.length > 0 ||
  [...authorities, ...certificates].some(({ findings, todo }) => todo !== undefined || findings.some(isGrave));

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

export const NO_CERTIFICATES: CertificatesView = { authorities: [], certificates: [] };
