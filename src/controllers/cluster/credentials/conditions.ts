/** The condition CertificatesValid. */
import type { ConditionUpdate } from '../../../domain/conditions.ts';
import { iso } from '../../../lib/time.ts';
import { isFatal, reasonOf, sentenceOf } from '../../../pki/findings.ts';
import { isFormed, type Observed } from '../observed.ts';
import { ROTATING } from './ca-rotation.ts';
import { rotationOf } from './ca-rotation-progress.ts';
import { isRequestPending } from './cert-manager-requests.ts';
import { fatalFindings, findingsOf, SECRET_UNREADABLE, unreadableSecrets } from './certificates.ts';

export const CERTIFICATES_VALID = 'CertificatesValid';

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
    return [{ type, status: 'False', reason: 'Issuing', message: 'certificates are being issued' }];
  const { stale = [] } = o.certificates;
  if (due) return [{ type, status: 'True', reason: 'Renewing', message: 'a renewed certificate is being written' }];
  if (stale.length > 0) {
    const message = `the previous certificate is still served at ${stale.join(', ')}: the kubelet updates the Secret within a minute or two, and no member has to be restarted`;
    return [{ type, status: 'True', reason: 'Renewing', message }];
  }
  const [first] = certificates.toSorted((a, b) => (a.notAfter ?? 0) - (b.notAfter ?? 0));
  const message = `the first certificate to expire is in Secret ${first?.need.secret}, on ${iso(first?.notAfter ?? 0)}`;
  return [{ type, status: 'True', reason: 'Valid', message }];
}
