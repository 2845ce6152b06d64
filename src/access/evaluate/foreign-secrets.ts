/**
 * Secrets where those of cert-manager should be, and that it did not issue for this cluster. It would write over them, and
 * members would be started on something that nobody renews: they count as absent, and are named.
 */

import { CERTIFICATE_NAME_ANNOTATION } from '../../api/names.ts';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import { holding } from '../../domain/ownership.ts';
import type { Secret } from '../../gen/kube.ts';
import type { Finding } from '../../pki/findings.ts';

export interface Sorted {
  readonly secrets: ReadonlyMap<string, Secret | undefined>;
  /** What is to be said instead of a missing Secret. */
  readonly named: (finding: Finding) => Finding;
}

export function ignoreForeignSecrets(needs: readonly CertificateRequirement[], secrets: Sorted['secrets']): Sorted {
  const owners = new Map(needs.flatMap((need) => strangerIn(secrets.get(need.secret), need)));
  return {
    secrets: new Map([...secrets].map(([name, secret]) => [name, owners.has(name) ? undefined : secret])),
    named: (finding) => {
      const owner = finding.is === 'secretMissing' ? owners.get(finding.secret) : undefined;
      return owner === undefined ? finding : { is: 'secretForeign', secret: finding.secret, owner };
    },
  };
}

/** A Secret that an earlier cluster of the name has left has the same Certificate on it, and is taken over by cert-manager. */
function strangerIn(secret: Secret | undefined, need: CertificateRequirement): readonly (readonly [string, string])[] {
  if (!secret || need.from !== 'user' || !need.requested) return [];
  const issuedFor = secret.metadata.annotations?.[CERTIFICATE_NAME_ANNOTATION];
  if (issuedFor === need.requested.certificate) return [];
  const held = holding(secret, '');
  const owner = issuedFor === undefined && held.is === 'foreign' ? held.owner : `Certificate ${issuedFor}`;
  return [[need.secret, owner]];
}
