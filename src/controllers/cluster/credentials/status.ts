/** The conditions CertificatesValid and AuthEnabled. */
import { wantsAuth } from '../../../api/tls.ts';
import type { ConditionUpdate } from '../../../domain/conditions.ts';
import { iso } from '../../../lib/time.ts';
import { isFatal, reasonOf, sentenceOf } from '../../../pki/findings.ts';
import { isAuthOn, lockedOut, passwordSecret, unreadPassword, unsecured } from './auth.ts';
import { isRequestPending } from './cert-manager-requests.ts';
import { findingsOf, unreadSecrets } from './certificates.ts';
import type { CredentialsFacts } from './observed.ts';
import { ROTATING } from './state.ts';

export const CERTIFICATES_VALID = 'CertificatesValid';
export const AUTH_ENABLED = 'AuthEnabled';

export function certificateConditions(c: CredentialsFacts, rotating: string | undefined): readonly ConditionUpdate[] {
  const { certificates, stale = [] } = c.certificates;
  const type = CERTIFICATES_VALID;
  const unread = unreadSecrets(c);
  if (unread) return [{ type, status: 'Unknown', ...unread }];
  if (certificates.length === 0) return [];
  const all = findingsOf(c);
  const grave = all.filter(isFatal);
  const worst = grave[0] ?? (rotating === undefined ? all[0] : undefined);
  if (worst) {
    const sentences = [...grave, ...all.filter((f) => !isFatal(f))].map(sentenceOf);
    if (rotating !== undefined) sentences.push(rotating);
    const bad = grave.length > 0 || (!c.formed && all.some(isRequestPending));
    return [{ type, status: bad ? 'False' : 'True', reason: reasonOf(worst), message: sentences.join('; ') }];
  }
  if (rotating !== undefined) return [{ type, status: 'True', reason: ROTATING, message: rotating }];
  const due = certificates.some(({ todo }) => todo !== undefined);
  if (certificates.some(({ usable }) => !usable) || (due && !c.formed))
    return [{ type, status: 'False', reason: 'Issuing', message: 'certificates are being issued' }];
  if (due) return [{ type, status: 'True', reason: 'Renewing', message: 'a renewed certificate is being written' }];
  if (stale.length > 0) {
    const message = `the previous certificate is still served at ${stale.join(', ')}: the kubelet updates the Secret within a minute or two, and no member has to be restarted`;
    return [{ type, status: 'True', reason: 'Renewing', message }];
  }
  const [first] = certificates.toSorted((a, b) => (a.notAfter ?? 0) - (b.notAfter ?? 0));
  const message = `the first certificate to expire is in Secret ${first?.need.secret}, on ${iso(first?.notAfter ?? 0)}`;
  return [{ type, status: 'True', reason: 'Valid', message }];
}

/** Only for a cluster with spec.auth. While etcd does not respond, the condition is left as it is. */
export function authConditions(c: CredentialsFacts): readonly ConditionUpdate[] {
  const on = isAuthOn(c);
  const unread = unreadPassword(c);
  if (!wantsAuth(c.cluster.spec) || (on === undefined && c.formed && !unread)) return [];
  const type = AUTH_ENABLED;
  const status = on === undefined && unread ? 'Unknown' : on === true ? 'True' : 'False';
  const trouble = lockedOut(c) ?? unread ?? unsecured(c) ?? c.password?.problem;
  if (trouble) return [{ type, status, reason: trouble.reason, message: trouble.message }];
  if (on !== true) return [{ type, status, reason: 'EnablingAuth', message: 'auth will be enabled' }];
  const message = `auth is enabled; the root password is in Secret ${passwordSecret(c)}`;
  return [{ type, status, reason: 'Enabled', message }];
}
