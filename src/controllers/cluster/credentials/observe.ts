/** Gathers what only the credentials chain reads: Secrets, Certificates, served certificates and the state of auth. */
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import type { Access, Ask } from '../../../etcd/client.ts';
import type { MemberView } from '../observed.ts';
import type { SecretPorts } from './execute-managed-secrets.ts';
import type { RootPorts } from './execute-root-password.ts';
import { askAuth } from './observe-auth.ts';
import { type IssuingPorts, observeIssuance } from './observe-cert-manager.ts';
import { observeServedCertificates } from './observe-served-certificates.ts';
import type { GatheredCredentials } from './observed.ts';

export type CredentialsPorts = SecretPorts & RootPorts & IssuingPorts;

export type JudgedSecrets = Pick<GatheredCredentials, 'certificates' | 'password'>;

/**
 * Before any member is asked: Secrets that become readable in between would leave members that could not be asked, and no reason
 * for it, and a healthy seed that does not respond may be deleted.
 */
export const judgeSecrets = async (
  { credentials }: CredentialsPorts,
  cluster: EtcdCluster,
): Promise<JudgedSecrets> => ({
  certificates: await credentials.view(cluster),
  password: await credentials.password(cluster),
});

/** `ask` is a request to a member that has returned the member list. */
export async function observeCredentials(
  ports: CredentialsPorts,
  cluster: EtcdCluster,
  { certificates, password }: JudgedSecrets,
  members: readonly MemberView[],
  ask: (Ask & { readonly access: Access }) | undefined,
  signal: AbortSignal,
): Promise<GatheredCredentials> {
  const { credentials } = ports;
  const [issuance, auth, served] = await Promise.all([
    observeIssuance(ports, cluster, credentials.domain, signal),
    ask && askAuth(ports.etcd, cluster, ask),
    // While Secrets cannot be read, served certificates are not recorded, and the request could block on another read.
    certificates.unreadable ? {} : observeServedCertificates(credentials, cluster, members),
  ]);
  return { certificates: { ...certificates, ...served }, password, ...issuance, ...auth };
}
