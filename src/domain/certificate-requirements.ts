/** Which certificates a cluster needs, which Secrets they are in, and which DNS names they must have. */

import type { EtcdCluster } from '../api/etcd-cluster.ts';
import {
  applicationCertificateName,
  applicationRequestName,
  clientCAName,
  clientServiceName,
  type EtcdPortName,
  headlessServiceName,
  issuedPeerName,
  issuedServerName,
  operatorCertificateName,
  operatorMountName,
  operatorRequestName,
  peerCAName,
  peerMountName,
  peerRequestName,
  serverMountName,
  serverRequestName,
} from '../api/names.ts';
import { DEFAULT_DURATION, type Tls } from '../api/tls.ts';
import { parseDuration } from '../lib/duration.ts';

export type CertificateRole = 'server' | 'peer' | 'operator' | 'application';

/** Extended key usages by role. */
export const EXTENDED_USAGES: Readonly<Record<CertificateRole, readonly ('server auth' | 'client auth')[]>> = {
  server: ['server auth', 'client auth'], // etcd's gRPC gateway is a client that uses it
  peer: ['server auth', 'client auth'],
  operator: ['client auth'],
  application: ['client auth'],
};

export const ETCD_PORTS: readonly EtcdPortName[] = ['client', 'peer'];
export const portOf = (role: CertificateRole): EtcdPortName => (role === 'peer' ? 'peer' : 'client');

/** A Certificate that the operator requests from cert-manager. */
export interface Requested {
  readonly certificate: string;
  readonly issuer: { readonly name: string; readonly kind?: string };
}

/** One certificate: in a Secret of the user or of cert-manager, or in one that the operator issues. */
export type CertificateRequirement = {
  readonly role: CertificateRole;
  /** The Secret that it is in. */
  readonly secret: string;
} & (
  | {
      readonly from: 'user';
      /** The managed copy that members mount or the operator uses; applications read the original. */
      readonly mount?: string;
      /** The Secret counts only if this Certificate has issued it, not if another controller or a user created it. */
      readonly requested?: Requested;
    }
  | {
      readonly from: 'operator';
      /** The Secret of the CA that signs it. */
      readonly caSecret: string;
      readonly durationMs: number;
      readonly renewBeforeMs: number;
    }
);

/** The Secret that the operator writes for it, if any. */
export const writtenFor = (need: CertificateRequirement): string | undefined =>
  need.from === 'user' ? need.mount : need.secret;

type Managed = NonNullable<NonNullable<Tls['peer']>['managed']>;

function lifeOf({ duration, renewBefore }: Managed): { readonly durationMs: number; readonly renewBeforeMs: number } {
  const durationMs = parseDuration(duration ?? DEFAULT_DURATION) ?? 0;
  return { durationMs, renewBeforeMs: parseDuration(renewBefore ?? '') ?? durationMs / 3 };
}

/** Whether client certificates are required (mTLS). */
export const isMutual = ({ client }: Tls): boolean =>
  client?.operatorClientSecretRef !== undefined ||
  client?.certManager?.operatorClientIssuerRef !== undefined ||
  (client?.managed !== undefined && client.managed.clientCertificates !== 'None');

/** etcd reads its CA bundle at start, and only on ports where it verifies certificates of others. */
export const loadsBundleAtStart = ({ spec }: EtcdCluster, part: EtcdPortName): boolean =>
  part === 'peer' ? spec.tls?.peer !== undefined : isMutual(spec.tls ?? {});

export function certificatesOf({ metadata: { name = '' }, spec }: EtcdCluster): readonly CertificateRequirement[] {
  const { client, peer } = spec.tls ?? {};
  return [...(client ? clientNeeds(name, client) : []), ...(peer ? peerNeeds(name, peer) : [])];
}

function clientNeeds(cluster: string, client: NonNullable<Tls['client']>): readonly CertificateRequirement[] {
  const { serverSecretRef, operatorClientSecretRef, certManager, managed } = client;
  const mount = serverMountName(cluster);
  const mutual = isMutual({ client });
  if (managed) {
    const signed = { from: 'operator', caSecret: clientCAName(cluster), ...lifeOf(managed) } as const;
    const clients = [
      { role: 'operator', secret: operatorCertificateName(cluster), ...signed },
      { role: 'application', secret: applicationCertificateName(cluster), ...signed },
    ] as const;
    return [{ role: 'server', secret: mount, ...signed }, ...(mutual ? clients : [])];
  }
  if (certManager) return requestedNeeds(cluster, certManager);
  const operator = { role: 'operator', from: 'user', mount: operatorMountName(cluster) } as const;
  return [
    { role: 'server', from: 'user', secret: serverSecretRef?.name ?? '', mount },
    ...(mutual ? [{ ...operator, secret: operatorClientSecretRef?.name ?? '' }] : []),
  ];
}

function requestedNeeds(
  cluster: string,
  { serverIssuerRef, operatorClientIssuerRef: issuer }: NonNullable<NonNullable<Tls['client']>['certManager']>,
): readonly CertificateRequirement[] {
  const need = (role: CertificateRole, secret: string, certificate: string, by: Requested['issuer']) =>
    ({ role, from: 'user', secret, requested: { certificate, issuer: by } }) as const;
  const server = need('server', issuedServerName(cluster), serverRequestName(cluster), serverIssuerRef);
  const clients = (by: Requested['issuer']): readonly CertificateRequirement[] => [
    {
      ...need('operator', operatorCertificateName(cluster), operatorRequestName(cluster), by),
      mount: operatorMountName(cluster),
    },
    need('application', applicationCertificateName(cluster), applicationRequestName(cluster), by),
  ];
  return [{ ...server, mount: serverMountName(cluster) }, ...(issuer ? clients(issuer) : [])];
}

function peerNeeds(
  cluster: string,
  { managed, secretRef, certManager }: NonNullable<Tls['peer']>,
): readonly CertificateRequirement[] {
  const mount = peerMountName(cluster);
  if (managed) {
    return [{ role: 'peer', secret: mount, from: 'operator', caSecret: peerCAName(cluster), ...lifeOf(managed) }];
  }
  if (certManager) {
    const requested = { certificate: peerRequestName(cluster), issuer: certManager.issuerRef };
    return [{ role: 'peer', from: 'user', secret: issuedPeerName(cluster), mount, requested }];
  }
  return [{ role: 'peer', from: 'user', secret: secretRef?.name ?? '', mount }];
}

export interface CertificateNames {
  /** Names of members; a wildcard covers present and future ones. */
  readonly members: readonly string[];
  /** Names of the client Service. */
  readonly clients: readonly string[];
  /** All names that an issued certificate gets. */
  readonly all: readonly string[];
}

/** etcd resolves the IP of a peer back to a name, and that name ends with the cluster domain. */
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
