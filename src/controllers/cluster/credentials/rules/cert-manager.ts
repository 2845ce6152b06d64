/** The row of upkeep about the Certificates that are requested from cert-manager. */
import type { Contributed, Observed } from '../../observed.ts';
import { dueRequests } from '../due.ts';

export function requestCertificates(o: Observed): Contributed {
  const steps = dueRequests(o);
  if (steps.length === 0) return undefined;
  return { message: 'certificates are requested from cert-manager', sequences: steps.map((step) => [step]) };
}
