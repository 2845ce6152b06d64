/** What is wrong with the certificates of a cluster, and what it keeps from happening. */

import { isUnsettled, renewalOf } from '../../../access/evaluate/view.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { requestedRotation } from '../../../api/names.ts';
import { SECRETS_UNSETTLED_MS, UNREADABLE_RECHECK_MS } from '../../../domain/timing.ts';
import { type Finding, isFatal, sentenceOf } from '../../../pki/findings.ts';
import { isFormed, type Observed, unreadableObjects } from '../observed.ts';
import { isRequestPending, issuanceFindings, withIssuance } from './cert-manager-requests.ts';

export const SECRET_UNREADABLE = 'SecretUnreadable';

/** Which Secret cannot be read, why, and what to do; `undefined` when all were read. */
export function unreadableSecrets({ certificates: { unreadable: unread } }: Observed): string | undefined {
  if (!unread) return undefined;
  const meanwhile = unread.judged
    ? 'Members are reached with what was read before'
    : 'The operator cannot reach the members';
  return (
    `Secret ${unread.secrets.join(', ')} cannot be read: ${unread.message}. ${meanwhile}; until it can be read, no certificate is issued, ` +
    'no CA is rotated and no password is changed. Check that the operator may get Secrets in this namespace, and that the API server ' +
    'can decrypt them (its KMS provider); it is read again within 5 minutes'
  );
}

/** Objects that could not be read: whether they match the spec is not known. */
export function unreadableMessage(o: Observed): { readonly reason: string; readonly message: string } | undefined {
  const secrets = unreadableSecrets(o);
  if (secrets !== undefined) return { reason: SECRET_UNREADABLE, message: secrets };
  const objects = unreadableObjects(o);
  if (objects.length === 0) return undefined;
  const message = `${objects.join('; ')}. It is neither created nor corrected until it can be read; it is read again every ${UNREADABLE_RECHECK_MS / 1_000} s`;
  return { reason: 'ReadFailed', message };
}

export const unreadableRequeueMs = (o: Observed): number | undefined =>
  unreadableObjects(o).length > 0 ? UNREADABLE_RECHECK_MS : undefined;

/** Without duplicates: a finding about a CA is found again for every certificate that it signs. */
export function findingsOf(o: Observed): readonly Finding[] {
  const { cas, certificates, bundles } = o.certificates;
  const all = withIssuance(
    o,
    [...cas, ...certificates, ...bundles].flatMap(({ findings }) => findings),
  );
  const sentences = all.map(sentenceOf);
  return all.filter((_, i) => sentences.indexOf(sentences[i] ?? '') === i);
}

export const fatalFindings = (o: Observed): readonly Finding[] => findingsOf(o).filter(isFatal);

/** A bootstrapped cluster is reconciled with the certificates that its members have. */
const isBootstrapped = (o: Observed): boolean => isFormed(o) || o.members.length > 0;
const describeFindings = (findings: readonly Finding[]): string | undefined =>
  findings.length === 0 ? undefined : findings.map(sentenceOf).join('; ');

/** Why the cluster cannot be bootstrapped until a user corrects something, if so. */
export const certificatesMissing = (o: Observed): string | undefined =>
  isBootstrapped(o) ? undefined : (unreadableSecrets(o) ?? describeFindings(fatalFindings(o)));

/** Certificates that cert-manager is issuing. */
export const certificatesAwaited = (o: Observed): string | undefined =>
  isBootstrapped(o) ? undefined : describeFindings(findingsOf(o).filter(isRequestPending));

/** Whether the Secrets that a new member mounts exist; otherwise its Pod would hang in ContainerCreating. */
export const canMount = ({ certificates: { certificates, bundles } }: Observed): boolean =>
  certificates.every(({ need, usable }) => usable || (need.role !== 'server' && need.role !== 'peer')) &&
  bundles.every(({ todo, findings }) => todo === undefined && findings.length === 0);

/** The CA bundle of the first member is recorded: other members get another one only by a CA rotation. */
export function bundleLatch({ cluster, certificates: { trusts } }: Observed): Pick<EtcdClusterStatus, 'trust'> {
  const value = requestedRotation(cluster.metadata.annotations);
  const begin = trusts.flatMap(({ part, next }) => (next?.step === 'begin' ? [[part, next.digest] as const] : []));
  if (begin.length === 0) return {};
  const commanded = value !== undefined && { commanded: Object.fromEntries(begin.map(([part]) => [part, value])) };
  return { trust: { ...Object.fromEntries(begin), ...commanded } };
}

/** The operator gets no event when a Secret changes, or when a certificate is due for renewal. */
export function certificatesRequeueMs(o: Observed): number | undefined {
  const { unreadable: unread } = o.certificates;
  if (unread) return Math.max(0, unread.retryAt - o.now); // no read happens before that
  if (isUnsettled(o.certificates) || issuanceFindings(o).length > 0) return SECRETS_UNSETTLED_MS;
  const renewal = renewalOf(o.certificates);
  return renewal === undefined ? undefined : Math.max(0, renewal - o.now);
}
