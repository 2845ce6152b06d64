/** Which certificates members serve in a handshake. */

import type { CertificatesView } from '../../../access/evaluate/view.ts';
import type { SecretCache } from '../../../access/secret-cache.ts';
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { CLIENT_PORT, type EtcdPortName, PEER_PORT, peerMountName, serverMountName } from '../../../api/names.ts';
import { endpointsOf, hostsOf } from '../etcd-calls.ts';
import type { MemberView } from '../observed.ts';

/** Only for members that mount the operator's copies: Pods of an earlier operator mount the user's own Secret. */
export async function observeServedCertificates(
  credentials: SecretCache,
  cluster: EtcdCluster,
  members: readonly MemberView[],
): Promise<Pick<CertificatesView, 'stale' | 'proven'>> {
  const of = async (part: EtcdPortName, port: number, mount: string) => {
    const running = members.filter(({ pod }) => pod.is === 'present');
    const observed = running.filter(({ pod, self }) => self && pod.is === 'present' && pod.tls?.[part]?.leaf === mount);
    const { behind, unseen } = await credentials.served(cluster, part, hostsOf(observed, port));
    const whole = observed.length === running.length && observed.every((m) => endpointsOf(m).length > 0);
    return { part, behind, proven: whole && behind.length + unseen.length === 0 };
  };
  const name = cluster.metadata.name ?? '';
  const both = await Promise.all([
    of('client', CLIENT_PORT, serverMountName(name)),
    of('peer', PEER_PORT, peerMountName(name)),
  ]);
  return {
    stale: [...new Set(both.flatMap(({ behind }) => behind))],
    proven: both.flatMap(({ part, proven }) => (proven ? [part] : [])),
  };
}
