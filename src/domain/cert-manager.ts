/** The cert-manager kinds, with the fields that the operator writes and reads. */
import type { Condition } from '../api/conditions.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { ObjectMeta } from '../api/meta.ts';
import { CERT_MANAGER_GROUP as group } from '../api/names.ts';

const version = 'v1';
const resource = <Plural extends string, Kind extends string>(plural: Plural, kind: Kind) =>
  ({ group, version, plural, kind }) as const;
export const certificateKind = resource('certificates', 'Certificate');
export const certificateRequestKind = resource('certificaterequests', 'CertificateRequest');

/** cert-manager's conditions may lack fields that the operator's always have. */
export type TheirCondition = Pick<Condition, 'type' | 'status'> &
  Partial<Pick<Condition, 'reason' | 'message' | 'observedGeneration'>>;

export interface CertificateSpec {
  readonly secretName: string;
  readonly commonName?: string;
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  readonly usages?: readonly string[];
  readonly privateKey?: { readonly algorithm?: string; readonly size?: number };
  readonly issuerRef: { readonly group?: string; readonly kind?: string; readonly name: string };
}

export interface Certificate {
  readonly apiVersion: `${typeof group}/${typeof version}`;
  readonly kind: typeof certificateKind.kind;
  readonly metadata: ObjectMeta;
  readonly spec: CertificateSpec;
  readonly status?: { readonly revision?: number; readonly conditions?: readonly TheirCondition[] };
}

/** cert-manager creates it for a Certificate, and the issuer approves and signs it. */
export interface CertificateRequest {
  readonly apiVersion: Certificate['apiVersion'];
  readonly kind: typeof certificateRequestKind.kind;
  readonly metadata: ObjectMeta;
  readonly status?: { readonly conditions?: readonly TheirCondition[] };
}

export const theirCondition = (
  { status }: Pick<Certificate | CertificateRequest, 'status'>,
  type: string,
): TheirCondition | undefined => status?.conditions?.find((c) => c.type === type);

/** The name of the CertificateRequest for the next revision. */
export const nextRequestName = ({ metadata, status }: Certificate): string =>
  `${metadata.name ?? ''}-${(status?.revision ?? 0) + 1}`;

export const asksCertManager = ({ spec: { tls } }: EtcdCluster): boolean =>
  tls?.client?.certManager !== undefined || tls?.peer?.certManager !== undefined;
