/** How the members of a cluster are reached: with the operator's client certificate and password, if the user may read their Secrets. */

import type { CertificatesView } from '../../access/evaluate/view.ts';
import { mountedIn } from '../../access/mounted.ts';
import { SecretCache } from '../../access/secret-cache.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { HANDSHAKE_TIMEOUT_MS } from '../../domain/timing.ts';
import type { Access } from '../../etcd/client.ts';
import { servedFingerprint } from '../../etcd/handshake.ts';
import type { Client } from '../../kube/client.ts';
import type { Member } from './objects.ts';

/** The DNS domain of Kubernetes. Only certificates that the plugin would issue depend on it, and it issues none. */
const DOMAIN = 'cluster.local';
/** As the operator's own default. */
const GRACE_MS = 120_000;

export interface ClusterAccess {
  readonly access: Access;
  readonly certificates?: CertificatesView;
  /** Why there are no credentials, although the cluster needs some. */
  readonly missing?: string;
}

/** `hostAt`: the host name in the certificate of the member at an endpoint. */
export async function clusterAccess(
  client: Pick<Client, 'get'>,
  cluster: EtcdCluster,
  members: readonly Member[],
  hostAt: (endpoint: string) => string | undefined,
  now: () => number,
): Promise<ClusterAccess> {
  const podOf = (name: string) => members.find(({ object }) => object.metadata.name === name)?.pod;
  const secrets = new SecretCache({
    client,
    now,
    domain: DOMAIN,
    look: (endpoint, tls) => servedFingerprint(endpoint, tls, HANDSHAKE_TIMEOUT_MS),
    mounted: () =>
      mountedIn(
        cluster,
        members.map(({ object }) => object),
        podOf,
      ),
    graceMs: GRACE_MS,
    clockAheadMs: () => 0,
  });
  const access = await secrets.access(cluster, hostAt);
  const { tls } = cluster.spec;
  if (tls === undefined) return { access };
  const certificates = await secrets.view(cluster);
  const { unreadable } = certificates;
  if (tls.client === undefined || access.tls) return { access, certificates };
  const missing = unreadable
    ? `you may not read the Secrets with its certificates (${unreadable.secrets.join(', ')}): ${unreadable.message}`
    : 'its certificates are missing: see the certificates below';
  return { access, certificates, missing };
}
