/** A member's DNS name, endpoints and URL schemes. */

import type { EtcdMember } from '../api/etcd-member.ts';
import {
  CLIENT_PORT,
  HEADLESS_SERVICE_ANNOTATION,
  headlessServiceName,
  hostOf,
  peerURL,
  type Scheme,
} from '../api/names.ts';
import { endpointOf } from '../lib/endpoint.ts';

/** One path segment or host label: any other value is ignored, because it could point outside of the volume or the domain. */
const SAFE = /^[A-Za-z0-9][-A-Za-z0-9_.]*$/;
export const annotated = (m: EtcdMember, annotation: string): string | undefined => {
  const value = m.metadata.annotations?.[annotation];
  return value !== undefined && SAFE.test(value) ? value : undefined;
};

/** An adopted member keeps the headless Service that is in its peer URL. */
export const serviceOf = (m: EtcdMember): string =>
  annotated(m, HEADLESS_SERVICE_ANNOTATION) ?? headlessServiceName(m.spec.clusterName);

/** The DNS name that its certificate must have. */
export const memberHost = (m: EtcdMember): string =>
  hostOf(m.metadata.name ?? '', serviceOf(m), m.metadata.namespace ?? '');

export const memberClientScheme = ({ spec: { tls } }: EtcdMember): Scheme =>
  tls?.clientServerSecretRef ? 'https' : 'http';
export const memberPeerScheme = ({ spec: { tls } }: EtcdMember): Scheme =>
  tls?.peerSecretRef || tls?.peerAutoTLS ? 'https' : 'http';

/** The client endpoint at the Pod IP. */
export const memberEndpoint = (m: EtcdMember, ip: string): string => endpointOf(ip, CLIENT_PORT, memberClientScheme(m));

/** The peer URL that the operator adds the member to etcd with; until it starts, it has no name there. */
export const addedPeerURL = (m: EtcdMember): string =>
  peerURL(
    m.metadata.name ?? '',
    headlessServiceName(m.spec.clusterName),
    m.metadata.namespace ?? '',
    memberPeerScheme(m),
  );
