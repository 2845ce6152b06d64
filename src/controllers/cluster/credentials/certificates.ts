/** What is wrong with the certificates of a cluster, and what it keeps from happening. */

import { isUnsettled, renewalOf } from '../../../access/evaluate/view.ts';
import type { Blocked } from '../../../domain/disruption.ts';
import { SECRETS_UNSETTLED_MS } from '../../../domain/timing.ts';
import { unreadObject } from '../../../domain/unread.ts';
import { type Finding, isFatal, sentenceOf } from '../../../pki/findings.ts';
import { isRequestPending, issuanceFindings, withIssuance } from './cert-manager-requests.ts';
import { dueMessage } from './due.ts';
import { type CredentialsFacts, isUnread } from './observed.ts';
import type { Waiting } from './state.ts';

/** Which Secret cannot be read, why, and what to do. */
export function unreadSecrets({ certificates: { unreadable: unread } }: CredentialsFacts): Blocked | undefined {
  if (!unread) return undefined;
  const meanwhile = unread.judged
    ? 'Members are reached with what was read before'
    : 'The operator cannot reach the members';
  const message =
    `Secret ${unread.secrets.join(', ')} cannot be read: ${unread.message}. ${meanwhile}; until it can be read, no certificate is issued, ` +
    'no CA is rotated and no password is changed. Check that the operator may get Secrets in this namespace, and that the API server ' +
    'can decrypt them (its KMS provider); it is read again within 5 minutes';
  return { reason: 'SecretUnreadable', message };
}

export const unreadCertificates = ({ issuance }: CredentialsFacts): readonly string[] =>
  (issuance?.is === 'there' ? issuance.certificates : []).flatMap(({ wanted, holding }) =>
    unreadObject('Certificate', wanted.metadata.name ?? '', holding),
  );

/** Without duplicates: a finding about a CA is found again for every certificate that it signs. */
export function findingsOf(c: CredentialsFacts): readonly Finding[] {
  const { cas, certificates, bundles } = c.certificates;
  const all = withIssuance(
    c,
    [...cas, ...certificates, ...bundles].flatMap(({ findings }) => findings),
  );
  const sentences = all.map(sentenceOf);
  return all.filter((_, i) => sentences.indexOf(sentences[i] ?? '') === i);
}

const describeFindings = (findings: readonly Finding[]): string => findings.map(sentenceOf).join('; ');

/**
 * Why the first member is not created. A Pod that starts with an invalid certificate crash-loops, or no client can connect to it. A
 * cluster with spec.auth that starts without a password would serve every client until there is one.
 */
export function bootstrapBlockedBy(c: CredentialsFacts): Waiting | undefined {
  if (c.formed) return undefined;
  const unread = unreadSecrets(c);
  if (unread) return { ...unread, waits: true };
  if (c.pods.length > 0) return undefined; // it is reconciled with the certificates that it has
  const findings = findingsOf(c);
  const fatal = findings.filter(isFatal);
  const reason = c.issuance?.is === 'missing' ? 'CertManagerNotInstalled' : 'CertificatesInvalid';
  if (fatal.length > 0) return { reason, message: describeFindings(fatal), waits: true };
  if (c.password?.problem) return { ...c.password.problem, waits: true };
  const message = dueMessage(c, findings) || describeFindings(findings.filter(isRequestPending));
  return message === '' ? undefined : { reason: 'Issuing', message, waits: false };
}

/** Whether the Secrets that a new member mounts exist; otherwise its Pod would hang in ContainerCreating. */
const canMount = ({ certificates: { certificates, bundles } }: CredentialsFacts): boolean =>
  certificates.every(({ need, usable }) => usable || (need.role !== 'server' && need.role !== 'peer')) &&
  bundles.every(({ todo, findings }) => todo === undefined && findings.length === 0);

export const mountBlockedBy = (c: CredentialsFacts): Waiting | undefined =>
  canMount(c)
    ? undefined
    : { reason: 'CertificatesInvalid', message: 'certificates are missing or invalid', waits: true };

/** Why a new member could not be reached, although its Pod would start: its name is in no certificate. */
export function newNamesBlockedBy({ certificates: { certificates } }: CredentialsFacts): Waiting | undefined {
  const lacking = certificates.flatMap(({ need, newMembersLack: names = [] }) =>
    names.length === 0 ? [] : [`Secret ${need.secret} lacks ${names.join(', ')}`],
  );
  if (lacking.length === 0) return undefined;
  const message = `no certificate has the name of a new member: the one in ${lacking.join(', and the one in ')}. Issue it with that as well`;
  return { reason: 'CertificatesInvalid', message, waits: true };
}

export function recreateBlockedBy(c: CredentialsFacts): string | undefined {
  if (isUnread(c)) return 'its Secrets cannot be read: whether its Pod could be recreated is unknown';
  const blocked = mountBlockedBy(c);
  return blocked && `its Pod could not be recreated: ${blocked.message}`;
}

/** The operator gets no event when a Secret changes, or when a certificate is due for renewal. */
export function certificatesRequeueMs(c: CredentialsFacts): number | undefined {
  const { unreadable: unread } = c.certificates;
  if (unread) return Math.max(0, unread.retryAt - c.now); // no read happens before that
  if (isUnsettled(c.certificates) || issuanceFindings(c).length > 0) return SECRETS_UNSETTLED_MS;
  const renewal = renewalOf(c.certificates);
  return renewal === undefined ? undefined : Math.max(0, renewal - c.now);
}
