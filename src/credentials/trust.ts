/** Whom the members of a cluster trust: they read it when they start, and it is recorded, or a lost Secret would take it along. */
import { createHash } from 'node:crypto';
import type { CertificateRole } from '../api/certificates.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import { certificatesIn } from '../pki/pem.ts';

/** The same for the same authorities, in whatever order and with whatever around them; `undefined` when there is none. */
export function digestOf(pem: string): string | undefined {
  const prints = certificatesIn(pem).map(({ fingerprint256 }) => fingerprint256);
  if (prints.length === 0) return undefined;
  return createHash('sha256')
    .update([...new Set(prints)].sort().join())
    .digest('hex');
}

/** Clusters that an earlier operator made have none. */
export const recordedTrust = ({ status }: EtcdCluster, role: CertificateRole): string | undefined =>
  status?.trust?.[role === 'peer' ? 'peer' : 'client'];

/** Whether members that run would trust what these authorities sign, as far as is known. */
export function isTrusted(cluster: EtcdCluster, role: CertificateRole, pem: string): boolean {
  const recorded = recordedTrust(cluster, role);
  return recorded === undefined || recorded === digestOf(pem);
}
