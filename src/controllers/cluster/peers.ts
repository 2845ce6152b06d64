/**
 * What the peers of a cluster demand of each other. All members must be alike: a plaintext peer, one with `--peer-auto-tls` and one
 * with certificates cannot connect to each other. So members that exist decide, not what a user has edited since.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { PEER_AUTO_TLS_ANNOTATION, type Scheme } from '../../api/names.ts';
import { arePeersPinned, type ClusterFacts } from './observed.ts';

export interface Peers {
  /** They demand the name of peers in their certificates. */
  readonly pinned: boolean;
  /** `--peer-auto-tls`: the traffic is encrypted with self-signed certificates that no peer verifies. */
  readonly autoTls: boolean;
}

const isAsked = ({ metadata }: EtcdCluster): boolean => metadata.annotations?.[PEER_AUTO_TLS_ANNOTATION] === 'true';

/** Of the first member. Certificates that the spec names take precedence, as with the earlier operator. */
export const peersOfSeed = (cluster: EtcdCluster): Peers => ({
  pinned: true,
  autoTls: isAsked(cluster) && cluster.spec.tls?.peer === undefined,
});

const hasAutoTls = ({ spec: { tls } }: EtcdMember): boolean =>
  tls?.peerAutoTLS === true && tls.peerSecretRef === undefined;

/** Of members that are added. etcd-migrate writes `peerAutoTLS` into the EtcdMembers that it adopts. */
export const peersOf = (o: ClusterFacts): Peers => ({
  pinned: arePeersPinned(o),
  autoTls: o.members.length > 0 ? o.members.some(({ object }) => hasAutoTls(object)) : peersOfSeed(o.cluster).autoTls,
});

/** The scheme of the peer URLs of new members. */
export const peerSchemeOf = ({ spec }: EtcdCluster, { autoTls }: Peers): Scheme =>
  autoTls || spec.tls?.peer ? 'https' : 'http';

/** What a user has stated about peers, and what therefore has no effect. */
export function ignoredAboutPeers(o: ClusterFacts): readonly string[] {
  if (o.members.length === 0) return [];
  const { autoTls } = peersOf(o);
  const { peer } = o.cluster.spec.tls ?? {};
  const instead = 'To change what peers demand of each other, restore a snapshot into a new cluster with tls.peer';
  if (isAsked(o.cluster) && !autoTls)
    return [
      `annotation ${PEER_AUTO_TLS_ANNOTATION} has no effect: the members were started with ${peer ? 'tls.peer' : 'plaintext peers'}, and could not connect to peers with --peer-auto-tls. ${instead}`,
    ];
  return peer && autoTls
    ? [
        `tls.peer has no effect: the members run with --peer-auto-tls, and could not connect to peers that demand certificates. ${instead}`,
      ]
    : [];
}
