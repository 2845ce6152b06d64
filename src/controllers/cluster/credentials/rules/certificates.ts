/** Rules about certificates: requested from cert-manager, issued, and copied into the Secrets that members mount. */

import { ETCD_PORTS } from '../../../../domain/certificate-requirements.ts';
import { independent } from '../../../../runtime/plan.ts';
import { findingsOf } from '../certificates.ts';
import { type DueSecret, dueRequests, dueSecrets, REQUESTING, secretStep, writeMessage } from '../due.ts';
import type { Contributed, CredentialsFacts } from '../observed.ts';

export const requestCertificates = (c: CredentialsFacts): Contributed =>
  independent(REQUESTING, dueRequests(c, findingsOf(c)));

export function writeSecrets(c: CredentialsFacts): Contributed {
  const due = dueSecrets(c);
  if (due.length === 0) return undefined;
  const step = ({ todo, secret }: DueSecret) => secretStep(c, todo, secret);
  // One sequence per port: a Secret that is refused must not keep the certificates of the other port from being renewed.
  const sequences = ETCD_PORTS.map((port) => due.filter(({ part }) => part === port).map(step));
  return { message: writeMessage(due), sequences: sequences.filter((steps) => steps.length > 0) };
}
