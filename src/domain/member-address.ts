/** Where a member is: its name in DNS, and how its ports are spoken to. */

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

/** One safe name, as a folder or a host: anything else is ignored rather than let out of its place. */
const SAFE = /^[A-Za-z0-9][-A-Za-z0-9_.]*$/;
export const annotated = (m: EtcdMember, annotation: string): string | undefined => {
  const value = m.metadata.annotations?.[annotation];
  return value !== undefined && SAFE.test(value) ? value : undefined;
};

/** A member that was taken over keeps the addresses that etcd knows. */
export const serviceOf = (m: EtcdMember): string =>
  annotated(m, HEADLESS_SERVICE_ANNOTATION) ?? headlessServiceName(m.spec.clusterName);

/** The name that its certificate must have. */
export const memberHost = (m: EtcdMember): string =>
  hostOf(m.metadata.name ?? '', serviceOf(m), m.metadata.namespace ?? '');

export const memberClientScheme = ({ spec: { tls } }: EtcdMember): Scheme =>
  tls?.clientServerSecretRef ? 'https' : 'http';
export const memberPeerScheme = ({ spec: { tls } }: EtcdMember): Scheme =>
  tls?.peerSecretRef || tls?.peerAutoTLS ? 'https' : 'http';

/** Where clients reach it, at the address of its Pod. */
export const memberEndpoint = (m: EtcdMember, ip: string): string => endpointOf(ip, CLIENT_PORT, memberClientScheme(m));

/** The address that etcd was told when the member was added by us, before it had a name there. */
export const addedPeerURL = (m: EtcdMember): string =>
  peerURL(
    m.metadata.name ?? '',
    headlessServiceName(m.spec.clusterName),
    m.metadata.namespace ?? '',
    memberPeerScheme(m),
  );
