/** The row of upkeep about the Certificates that are requested from cert-manager. */
import { independent } from '../../../../runtime/plan.ts';
import type { Contributed, Observed } from '../../observed.ts';
import { dueRequests } from '../due.ts';

export const requestCertificates = (o: Observed): Contributed =>
  independent('certificates are requested from cert-manager', dueRequests(o));
