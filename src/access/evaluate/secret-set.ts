/** The Secrets of a cluster as they were read, and access to their contents. Pure. */
import type { X509Certificate } from 'node:crypto';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { WRITTEN_AT_ANNOTATION } from '../../api/names.ts';
import { type CertificateRequirement, isMutual, namesOf, writtenFor } from '../../domain/certificate-requirements.ts';
import { holding } from '../../domain/ownership.ts';
import type { Secret } from '../../gen/kube.ts';
import { CA, CERT, KEY, type Requirements, type TlsSecret } from '../../pki/examine.ts';
import type { Finding, Role } from '../../pki/findings.ts';
import { certificatesIn, privateKeyIn } from '../../pki/pem.ts';
import { costly } from '../../pki/yielding.ts';
import type { Mounted } from './mounts.ts';

/** By name; `undefined` for one that does not exist. */
export type Secrets = ReadonlyMap<string, Secret | undefined>;

export interface EvalContext {
  readonly now: number;
  /** The DNS domain of the Kubernetes cluster. */
  readonly domain: string;
  /** What the Pods of the cluster mount. */
  readonly mounted: Mounted;
  /** How long the kubelet may take to update a Secret in the Pods that mount it. */
  readonly graceMs: number;
}

export interface SecretSet {
  readonly cluster: EtcdCluster;
  readonly secrets: Secrets;
  readonly around: EvalContext;
}

/** A member has started with certificates: from now on a CA is only replaced by a CA rotation. */
export const isBootstrapped = ({ cluster, around }: SecretSet): boolean =>
  cluster.status?.clusterID !== undefined || around.mounted.running;

export function textOf(secret: Secret | undefined, key: string): string {
  const encoded = secret?.data?.[key] ?? '';
  return secret && encoded !== '' ? costly(secret, `text ${key}`, () => Buffer.from(encoded, 'base64').toString()) : '';
}

export const tlsSecretOf = (secret: Secret | undefined, name: string): TlsSecret | undefined =>
  secret && {
    secret: name,
    data: Object.fromEntries([CERT, KEY, CA].map((key) => [key, textOf(secret, key)])),
  };

/** Only a Secret whose controller is this cluster is read and written; another one of the name is a finding. */
export function ours(
  { cluster, secrets }: SecretSet,
  name: string,
): { readonly secret?: Secret; readonly findings: readonly Finding[] } {
  const held = holding(secrets.get(name), cluster.metadata.uid ?? '');
  if (held.is === 'foreign') return { findings: [{ is: 'secretForeign', secret: name, owner: held.owner }] };
  return held.is === 'ours' ? { secret: held.object, findings: [] } : { findings: [] };
}

/** The Secret that is served: the operator's copy, or the user's own Secret for client applications. */
export function servedSecret(world: SecretSet, need: CertificateRequirement): Secret | undefined {
  const own = writtenFor(need);
  return own === undefined ? world.secrets.get(need.secret) : ours(world, own).secret;
}

/** The certificate and its intermediates. */
export const chainIn = (secret: Secret | undefined): readonly X509Certificate[] => certificatesIn(textOf(secret, CERT));
export const leafIn = (secret: Secret | undefined): X509Certificate | undefined => chainIn(secret)[0];
export const expiryOf = (certificate: X509Certificate | undefined): number | undefined =>
  certificate?.validToDate.getTime();

/** The certificate, if the key belongs to it. */
export function pairIn(secret: Secret | undefined, certName = CERT, keyName = KEY): X509Certificate | undefined {
  const [certificate] = certificatesIn(textOf(secret, certName));
  const key = privateKeyIn(textOf(secret, keyName));
  return certificate && key && certificate.checkPrivateKey(key) ? certificate : undefined;
}

/** A Secret without the annotation is from an earlier operator: 0, long ago. */
export const writtenAt = (secret: Secret | undefined): number =>
  Date.parse(secret?.metadata.annotations?.[WRITTEN_AT_ANNOTATION] ?? '') || 0;

export function demandsOf({ cluster, around }: SecretSet, role: Role, trust?: TlsSecret): Requirements {
  const { members, clients } = namesOf(cluster, role, around.domain);
  const mutual = isMutual(cluster.spec.tls ?? {});
  return { role, memberNames: members, clientNames: clients, mutual, trust };
}
