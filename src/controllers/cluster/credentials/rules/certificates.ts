/** Rules about certificates: issued, copied into the Secrets that members mount, and valid before a member starts with them. */

import type { SecretAction } from '../../../../access/evaluate/view.ts';
import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import { MANAGED_SECRET_RETRY_MS } from '../../../../domain/timing.ts';
import type { Step } from '../../../../runtime/plan.ts';
import type { ClusterCall } from '../../calls.ts';
import { type Contributed, type Decided, isFormed, type Observed } from '../../observed.ts';
import { passwordMissing } from '../auth.ts';
import { certificatesAwaited, certificatesMissing } from '../certificates.ts';
import { dueRequests, dueSecrets } from '../due.ts';

const MESSAGES = {
  createCA: 'a CA is created',
  issueCertificate: 'a certificate is issued',
  copySecret: 'a certificate is copied',
  copyCertificate: 'a renewed certificate is copied',
  writeCABundle: 'the CA bundle of members is written',
  publishCABundle: 'the CA bundle for clients is updated',
  createNextCA: 'the next CA is created',
  promoteNextCA: 'all members trust the next CA, which replaces the current one',
} as const satisfies Record<SecretAction, string>;

const messageOf = (due: ReturnType<typeof dueSecrets>): string =>
  due.map(({ todo, secret }) => `${MESSAGES[todo]}: Secret ${secret}`).join('; ');

export function writeSecrets(o: Observed): Contributed {
  const due = dueSecrets(o);
  if (due.length === 0) return undefined;
  const step = ({ todo, secret }: (typeof due)[number]): Step<ClusterCall> => {
    const call = { is: 'secret', name: todo, target: secret, cluster: identity(o.cluster) } as const;
    return { do: 'call', call, retryMs: MANAGED_SECRET_RETRY_MS };
  };
  // One sequence per port: a Secret that is refused must not keep the certificates of the other port from being renewed.
  const sequences = ETCD_PORTS.map((port) => due.filter(({ part }) => part === port).map(step));
  return { message: messageOf(due), sequences: sequences.filter((steps) => steps.length > 0) };
}

/**
 * A Pod that starts with an invalid certificate crash-loops, or no client can connect to it. A cluster with spec.auth that starts
 * without a password would serve every client until there is one.
 */
export function waitForCredentials(o: Observed): Decided {
  if (isFormed(o) || o.members.length > 0) return undefined;
  // A Certificate that exists may differ for good, where a policy changes it: its Secret is judged, not the request.
  const requested = dueRequests(o).some((step) => step.do === 'create');
  const due = requested ? 'certificates are requested from cert-manager' : messageOf(dueSecrets(o));
  const message = certificatesMissing(o) ?? (due || certificatesAwaited(o)) ?? passwordMissing(o)?.message;
  return message === undefined ? undefined : { message };
}
