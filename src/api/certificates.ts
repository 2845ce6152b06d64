/** Which certificates a cluster needs, where they come from, and which names they must carry. */
import { parseDuration } from '../lib/duration.ts';
import type { EtcdCluster } from './etcd-cluster.ts';
import {
  applicationCertificateName,
  clientAuthorityName,
  clientServiceName,
  headlessServiceName,
  issuedPeerName,
  issuedServerName,
  operatorCertificateName,
  peerAuthorityName,
  peerMountName,
  type Scheme,
  serverMountName,
} from './names.ts';
import { DEFAULT_DURATION, type Tls } from './tls.ts';

export type CertificateRole = 'server' | 'peer' | 'operator' | 'application';

/** One certificate: in a Secret of the user's, or in one that the operator issues it into. */
export type CertificateNeed = {
  readonly role: CertificateRole;
  /** Where it is. */
  readonly secret: string;
} & (
  | {
      readonly from: 'user';
      /** The copy that members mount. */
      readonly mount?: string;
    }
  | {
      readonly from: 'operator';
      /** The Secret of the authority that signs it. */
      readonly authority: string;
      readonly durationMs: number;
      readonly renewBeforeMs: number;
    }
);

/** The Secret that the operator writes for it, if any. */
export const writtenFor = (need: CertificateNeed): string | undefined =>
  need.from === 'user' ? need.mount : need.secret;

interface Managed {
  readonly duration?: string;
  readonly renewBefore?: string;
}

function lifeOf({ duration, renewBefore }: Managed): { readonly durationMs: number; readonly renewBeforeMs: number } {
  const durationMs = parseDuration(duration ?? DEFAULT_DURATION) ?? 0;
  return { durationMs, renewBeforeMs: parseDuration(renewBefore ?? '') ?? durationMs / 3 };
}

/** Whether clients must show a certificate. */
export const isMutual = ({ client }: Tls): boolean =>
  client?.operatorClientSecretRef !== undefined ||
  client?.certManager?.operatorClientIssuerRef !== undefined ||
  (client?.managed !== undefined && client.managed.clientCertificates !== 'None');

/** cert-manager is not asked for certificates yet; those of a cluster that exists are where it has put them. */
export function certificatesOf({ metadata: { name = '' }, spec, status }: EtcdCluster): readonly CertificateNeed[] {
  const { client, peer } = spec.tls ?? {};
  const exists = status?.clusterID !== undefined;
  return [
    ...(client && (exists || !client.certManager) ? clientNeeds(name, client) : []),
    ...(peer && (exists || !peer.certManager) ? peerNeeds(name, peer) : []),
  ];
}

function clientNeeds(cluster: string, client: NonNullable<Tls['client']>): readonly CertificateNeed[] {
  const { serverSecretRef, operatorClientSecretRef, certManager, managed } = client;
  const mount = serverMountName(cluster);
  const mutual = isMutual({ client });
  if (managed) {
    const signed = { from: 'operator', authority: clientAuthorityName(cluster), ...lifeOf(managed) } as const;
    const clients = [
      { role: 'operator', secret: operatorCertificateName(cluster), ...signed },
      { role: 'application', secret: applicationCertificateName(cluster), ...signed },
    ] as const;
    return [{ role: 'server', secret: mount, ...signed }, ...(mutual ? clients : [])];
  }
  const server = certManager ? issuedServerName(cluster) : serverSecretRef?.name;
  const operator = certManager ? operatorCertificateName(cluster) : operatorClientSecretRef?.name;
  return [
    { role: 'server', from: 'user', secret: server ?? '', mount },
    ...(mutual ? [{ role: 'operator', from: 'user', secret: operator ?? '' } as const] : []),
  ];
}

function peerNeeds(
  cluster: string,
  { managed, secretRef, certManager }: NonNullable<Tls['peer']>,
): readonly CertificateNeed[] {
  const mount = peerMountName(cluster);
  if (managed) {
    const authority = peerAuthorityName(cluster);
    return [{ role: 'peer', secret: mount, from: 'operator', authority, ...lifeOf(managed) }];
  }
  const secret = certManager ? issuedPeerName(cluster) : secretRef?.name;
  return [{ role: 'peer', from: 'user', secret: secret ?? '', mount }];
}

/** Of members that are to come. */
export const peerScheme = ({ spec }: EtcdCluster): Scheme => (spec.tls?.peer ? 'https' : 'http');

export interface CertificateNames {
  /** By which members are reached, `*.` for every one that there is or will be. */
  readonly members: readonly string[];
  /** By which clients come to the Service. */
  readonly clients: readonly string[];
  /** All that a certificate gets when it is made to fit. */
  readonly all: readonly string[];
}

/** etcd looks up the name of the address that a peer comes from, and that one ends with the domain of the cluster. */
export function namesOf(
  { metadata: { name = '', namespace = '' } }: EtcdCluster,
  role: CertificateRole,
  domain: string,
): CertificateNames {
  if (role === 'operator' || role === 'application') return { members: [], clients: [], all: [] };
  const long = (host: string): readonly string[] => [host, `${host}.${domain}`];
  const service = (of: string): string => `${of}.${namespace}.svc`;
  const any = `*.${service(headlessServiceName(name))}`;
  if (role === 'peer') return { members: long(any), clients: [], all: long(any) };
  const client = service(clientServiceName(name));
  const all = [...long(any), ...long(service(headlessServiceName(name))), ...long(client), 'localhost', '127.0.0.1'];
  return { members: [any], clients: [client], all };
}
