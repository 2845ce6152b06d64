/** Rules about certificates: made, copied to where members mount them, and good before anything is started on them. */

import type { Todo } from '../../../../access/evaluate/view.ts';
import { writtenFor } from '../../../../domain/certificate-requirements.ts';
import { identity } from '../../../../domain/ownership.ts';
import type { Step } from '../../../../runtime/plan.ts';
import { type Answered, isFormed, type Observed } from '../../observed.ts';
import { certificatesAwaited, certificatesMissing, unreadSecrets } from '../certificates.ts';

const RETRY_MS = 1_000;

const WORDS = {
  found: 'an authority is made',
  issue: 'a certificate is issued',
  copy: 'a certificate is taken over',
  copyLeaf: 'a renewed certificate is taken over',
  bundle: 'whom members trust is written down',
  publish: 'whom to trust is told to those who connect',
  prepare: 'the successor of an authority is made',
  succeed: 'all members trust the successor of an authority, which takes its place',
} as const satisfies Record<Todo, string>;

/** What cannot be written must not keep members of a cluster that exists from being repaired: it is tried again last. */
export const prepareCertificates = (o: Observed): Answered =>
  isFormed(o) && o.refusal !== undefined ? undefined : writeCertificates(o);

/** Authorities first: what they sign comes in the same pass. Never on an earlier read: a Secret that exists would count as missing. */
export function writeCertificates(o: Observed): Answered {
  if (unreadSecrets(o) !== undefined) return undefined;
  const { authorities, certificates, bundles } = o.certificates;
  const due = [
    ...authorities.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
    ...certificates.flatMap(({ need, todo }) => (todo ? [{ todo, secret: writtenFor(need) ?? '' }] : [])),
    ...bundles.flatMap(({ secret, todo }) => (todo ? [{ todo, secret }] : [])),
  ];
  if (due.length === 0) return undefined;
  const steps = due.map(({ todo, secret }): Step => {
    const call = { name: todo, target: secret, cluster: identity(o.cluster) };
    return { do: 'call', call, retryMs: RETRY_MS };
  });
  return { why: due.map(({ todo, secret }) => `${WORDS[todo]}: Secret ${secret}`).join('; '), steps };
}

/** A Pod that is started on a bad certificate crash-loops, or is reached by nobody. */
export function waitForCertificates(o: Observed): Answered {
  const why = certificatesMissing(o) ?? certificatesAwaited(o);
  return why === undefined ? undefined : { why };
}
