/**
 * Foreign Secrets under the names that this cluster's Certificates write to. cert-manager would overwrite them, and members would start
 * with a certificate that is never renewed: these Secrets count as absent, and a finding names the owner.
 */

import { CERTIFICATE_NAME_ANNOTATION } from '../../api/names.ts';
import type { CertificateRequirement } from '../../domain/certificate-requirements.ts';
import { holding } from '../../domain/ownership.ts';
import type { Secret } from '../../gen/kube.ts';
import type { Finding } from '../../pki/findings.ts';

export interface Sorted {
  readonly secrets: ReadonlyMap<string, Secret | undefined>;
  /** Replaces the finding about a missing Secret. */
  readonly named: (finding: Finding) => Finding;
}

export function ignoreForeignSecrets(needs: readonly CertificateRequirement[], secrets: Sorted['secrets']): Sorted {
  const owners = new Map(needs.flatMap((need) => foreignOwner(secrets.get(need.secret), need)));
  return {
    secrets: new Map([...secrets].map(([name, secret]) => [name, owners.has(name) ? undefined : secret])),
    named: (finding) => {
      const { secret } = finding;
      const owner = finding.is === 'secretMissing' ? owners.get(secret) : undefined;
      if (owner === undefined) return finding;
      return needs.some((need) => need.secret === secret && need.role === 'application')
        ? { is: 'applicationForeign', secret, owner, object: `Secret ${secret}` }
        : { is: 'secretForeign', secret, owner };
    },
  };
}

/** A Secret that a deleted cluster of the same name has left names the same Certificate, and cert-manager takes it over. */
function foreignOwner(
  secret: Secret | undefined,
  need: CertificateRequirement,
): readonly (readonly [string, string])[] {
  if (!secret || need.from !== 'user' || !need.requested) return [];
  const issuedFor = secret.metadata.annotations?.[CERTIFICATE_NAME_ANNOTATION];
  if (issuedFor === need.requested.certificate) return [];
  const held = holding(secret, '');
  const owner = issuedFor === undefined && held.is === 'foreign' ? held.owner : `Certificate ${issuedFor}`;
  return [[need.secret, owner]];
}
