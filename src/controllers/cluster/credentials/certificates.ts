/** What is said about the certificates of a cluster. */

import { isUnsettled, renewalOf, UNSETTLED_MS } from '../../../access/evaluate/view.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { requestedRotation } from '../../../api/names.ts';
import { iso } from '../../../lib/time.ts';
import { type Finding, isFatal, reasonOf, sentenceOf } from '../../../pki/findings.ts';
import { isFormed, type Observed, unreadableObjects } from '../observed.ts';
import { ROTATING, rotationOf } from './ca-rotation.ts';
import { isRequestPending, issuanceFindings, withIssuance } from './cert-manager-requests.ts';

export const CERTIFICATES_VALID = 'CertificatesValid';

export const SECRET_UNREADABLE = 'SecretUnreadable';

/** Which Secret cannot be read, why, and what to do; `undefined` when all were read. */
export function unreadableSecrets({ certificates: { unreadable: unread } }: Observed): string | undefined {
  if (!unread) return undefined;
  const meanwhile = unread.judged
    ? 'Members are reached with what was read before'
    : 'The operator cannot reach the members';
  return (
    `Secret ${unread.secrets.join(', ')} cannot be read: ${unread.why}. ${meanwhile}; until it can be read, no certificate is issued, ` +
    'no CA is rotated and no password is changed. Check that the operator may get Secrets in this namespace, and that the API server ' +
    'can decrypt them (its KMS provider); it is read again within 5 minutes'
  );
}

/** An API server that fails a read sends no event when it has recovered. */
const READ_AGAIN_MS = 10_000;

/** What could not be read: whether it is as the spec asks is not known. */
export function unreadableMessage(o: Observed): { readonly reason: string; readonly message: string } | undefined {
  const secrets = unreadableSecrets(o);
  if (secrets !== undefined) return { reason: SECRET_UNREADABLE, message: secrets };
  const objects = unreadableObjects(o);
  if (objects.length === 0) return undefined;
  const message = `${objects.join('; ')}. It is neither created nor corrected until it can be read; it is read again every ${READ_AGAIN_MS / 1_000} s`;
  return { reason: 'ReadFailed', message };
}

export const unreadableRequeueMs = (o: Observed): number | undefined =>
  unreadableObjects(o).length > 0 ? READ_AGAIN_MS : undefined;

/** Each once: what is wrong with an authority is wrong with all that it signs. */
export function findingsOf(o: Observed): readonly Finding[] {
  const { cas: authorities, certificates, bundles } = o.certificates;
  const all = withIssuance(
    o,
    [...authorities, ...certificates, ...bundles].flatMap(({ findings }) => findings),
  );
  const said = all.map(sentenceOf);
  return all.filter((_, i) => said.indexOf(said[i] ?? '') === i);
}

const fatalFindings = (o: Observed): readonly Finding[] => findingsOf(o).filter(isFatal);

/** What was begun goes on with what its members have. */
const isBootstrapped = (o: Observed): boolean => isFormed(o) || o.members.length > 0;
const describeFindings = (findings: readonly Finding[]): string | undefined =>
  findings.length === 0 ? undefined : findings.map(sentenceOf).join('; ');

/** Why nothing can be begun until somebody does something, if so. */
export const certificatesMissing = (o: Observed): string | undefined =>
  isBootstrapped(o) ? undefined : (unreadableSecrets(o) ?? describeFindings(fatalFindings(o)));

/** What cert-manager is about to issue. */
export const certificatesAwaited = (o: Observed): string | undefined =>
  isBootstrapped(o) ? undefined : describeFindings(findingsOf(o).filter(isRequestPending));

/** Whether a new member would find what it is to mount; otherwise its Pod would wait, and etcd with it. */
export const canMount = ({ certificates: { certificates, bundles } }: Observed): boolean =>
  certificates.every(({ need, usable }) => usable || (need.role !== 'server' && need.role !== 'peer')) &&
  bundles.every(({ todo, findings }) => todo === undefined && findings.length === 0);

/** Whom the first member trusts: no Secret may tell the others anything else, except in order. */
export function bundleLatch({ cluster, certificates: { trusts } }: Observed): Pick<EtcdClusterStatus, 'trust'> {
  const value = requestedRotation(cluster.metadata.annotations);
  const begin = trusts.flatMap(({ part, next }) => (next?.step === 'begin' ? [[part, next.digest] as const] : []));
  if (begin.length === 0) return {};
  const commanded = value !== undefined && { commanded: Object.fromEntries(begin.map(([part]) => [part, value])) };
  return { trust: { ...Object.fromEntries(begin), ...commanded } };
}

/** Nobody tells when a Secret changes, or when a certificate is to be renewed. */
export function certificatesRequeueMs(o: Observed): number | undefined {
  const { unreadable: unread } = o.certificates;
  if (unread) return Math.max(0, unread.retryAt - o.now); // earlier, nothing is read
  if (isUnsettled(o.certificates) || issuanceFindings(o).length > 0) return UNSETTLED_MS;
  const renewal = renewalOf(o.certificates);
  return renewal === undefined ? undefined : Math.max(0, renewal - o.now);
}

export function certificateConditions(o: Observed): readonly ConditionUpdate[] {
  const { certificates } = o.certificates;
  const type = CERTIFICATES_VALID;
  const unread = unreadableSecrets(o);
  if (unread !== undefined) return [{ type, status: 'Unknown', reason: SECRET_UNREADABLE, message: unread }];
  if (certificates.length === 0) return [];
  const [grave, all] = [fatalFindings(o), findingsOf(o)];
  const rotating = rotationOf(o);
  const worst = grave[0] ?? (rotating === undefined ? all[0] : undefined);
  if (worst) {
    const sentences = [...grave, ...all.filter((f) => !isFatal(f))].map(sentenceOf);
    if (rotating !== undefined) sentences.push(rotating);
    const bad = grave.length > 0 || (!isFormed(o) && all.some(isRequestPending));
    return [{ type, status: bad ? 'False' : 'True', reason: reasonOf(worst), message: sentences.join('; ') }];
  }
  if (rotating !== undefined) return [{ type, status: 'True', reason: ROTATING, message: rotating }];
  const due = certificates.some(({ todo }) => todo !== undefined);
  if (certificates.some(({ usable }) => !usable) || (due && !isFormed(o)))
    return [{ type, status: 'False', reason: 'Issuing', message: 'certificates are being made' }];
  const { stale: behind = [] } = o.certificates;
  if (due) return [{ type, status: 'True', reason: 'Renewing', message: 'a renewed certificate is on its way' }];
  if (behind.length > 0) {
    const message = `still shown is the certificate from before at ${behind.join(', ')}: Kubernetes brings the new one within a minute or two, and no member has to be restarted`;
    return [{ type, status: 'True', reason: 'Renewing', message }];
  }
  const [first] = certificates.toSorted((a, b) => (a.notAfter ?? 0) - (b.notAfter ?? 0));
  const message = `the first to expire is that in Secret ${first?.need.secret}, on ${iso(first?.notAfter ?? 0)}`;
  return [{ type, status: 'True', reason: 'Valid', message }];
}
