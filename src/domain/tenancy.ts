/** What the administrator lets tenants refer to: users who write our kinds in their namespaces, and perhaps nothing else there. */
import type { EtcdCluster, EtcdClusterSpec } from '../api/etcd-cluster.ts';
import { REFERENCE_LABEL } from '../api/names.ts';
import type { AdditionalMetadata } from '../api/resources.ts';
import type { SnapshotLocation } from '../api/snapshot-location.ts';

export interface Tenancy {
  /** Agents may use the cloud identity of their Pod or node: without a Secret, every tenant would have it. */
  readonly allowAmbientCredentials: boolean;
  /** Hosts of stores, `*.` at the start for all below; empty: all. */
  readonly allowedStoreEndpoints: readonly string[];
  /** CIDRs that agents and restoring members may connect to, by NetworkPolicies; empty: all. */
  readonly allowedStoreNetworks: readonly string[];
  /** ClusterIssuers of cert-manager; empty: all. */
  readonly allowedClusterIssuers: readonly string[];
  /** Secrets and PVCs that a spec names must carry the label that lets the operator use them. */
  readonly requireReferenceLabel: boolean;
  /** Keys of additionalMetadata that are not copied, `*` for any characters: other controllers act on them. */
  readonly deniedMetadata: readonly string[];
}

/** The defaults, with which every manifest of the earlier operator works. */
export const OPEN: Tenancy = {
  allowAmbientCredentials: false,
  allowedStoreEndpoints: [],
  allowedStoreNetworks: [],
  allowedClusterIssuers: [],
  requireReferenceLabel: false,
  deniedMetadata: [],
};

export const REFERENCE_NOT_PERMITTED = 'ReferenceNotPermitted';
const ASK = 'or ask the administrator of the operator to allow it';

/** `undefined` for a PVC, and where the agent reports it: an endpoint that is no URL, or that is in the Secret with the credentials. */
function hostOf({ s3, gcs, azure }: SnapshotLocation): URL | undefined {
  const account = azure?.account && `https://${azure.account}.blob.core.windows.net`;
  const endpoint =
    s3?.endpoint ?? (gcs ? (gcs.endpoint ?? 'https://storage.googleapis.com') : (azure?.endpoint ?? account));
  if (endpoint === undefined) return undefined;
  return URL.parse(endpoint.includes('://') ? endpoint : `https://${endpoint}`) ?? undefined;
}

/** Whether a host is in a list of hosts; `*.` at the start of an entry stands for all below. */
export const isListed = (list: readonly string[], { host, hostname }: URL): boolean =>
  list.some((entry) => (entry.startsWith('*.') ? hostname.endsWith(entry.slice(1)) : [host, hostname].includes(entry)));

/** With a copy, of which an agent reads one when it cannot read the other. */
type Locations = SnapshotLocation & { readonly copy?: SnapshotLocation | undefined };

/** Why a store may not be used. */
export const storeNotPermitted = ({ copy, ...first }: Locations, tenancy: Tenancy): string | undefined =>
  notPermitted(first, tenancy) ?? (copy && notPermitted(copy, tenancy));

function notPermitted(location: SnapshotLocation, tenancy: Tenancy): string | undefined {
  const remote = location.s3 ?? location.gcs ?? location.azure;
  const isAmbient = remote && (!remote.credentialsSecretRef || remote.serviceAccountName !== undefined);
  if (isAmbient && !tenancy.allowAmbientCredentials)
    return `the store has no credentialsSecretRef, or a serviceAccountName, and the cloud identity of the Pod may not be used: name a Secret with credentials and no serviceAccountName, ${ASK} (tenancy.allowAmbientCredentials)`;
  const url = hostOf(location);
  if (!url || tenancy.allowedStoreEndpoints.length === 0 || isListed(tenancy.allowedStoreEndpoints, url))
    return undefined;
  return `the store ${url.host} is not in the list of allowed endpoints: use one of ${tenancy.allowedStoreEndpoints.join(', ')}, ${ASK} (tenancy.allowedStoreEndpoints)`;
}

/** Why the certificates of a cluster may not be requested. */
export function issuerNotPermitted(
  { tls }: EtcdClusterSpec,
  { allowedClusterIssuers: list }: Tenancy,
): string | undefined {
  const { client, peer } = { client: tls?.client?.certManager, peer: tls?.peer?.certManager };
  const named = [client?.serverIssuerRef, client?.operatorClientIssuerRef, peer?.issuerRef];
  const other = named.find((issuer) => issuer?.kind === 'ClusterIssuer' && !list.includes(issuer.name));
  return other === undefined || list.length === 0
    ? undefined
    : `ClusterIssuer ${other.name} is not in the list of allowed ones: use one of ${list.join(', ')}, an Issuer of this namespace, ${ASK} (tenancy.allowedClusterIssuers)`;
}

/** Objects of the same namespace that a spec names. */
export interface References {
  readonly secrets: readonly string[];
  readonly claims: readonly string[];
}

type Encryption = { readonly keySecretRef: { readonly name?: string } } | undefined;
const named = (...refs: readonly ({ readonly name?: string } | undefined)[]): readonly string[] =>
  refs.flatMap((ref) => ref?.name || []);

export function storeReferences({ s3, gcs, azure, pvc, copy }: Locations, encryption: Encryption): References {
  const { credentialsSecretRef, caSecretRef } = s3 ?? gcs ?? azure ?? {};
  const second = copy ? storeReferences(copy, undefined) : { secrets: [], claims: [] };
  return {
    secrets: [...named(credentialsSecretRef, caSecretRef, encryption?.keySecretRef), ...second.secrets],
    claims: [...(pvc ? [pvc.claimName] : []), ...second.claims],
  };
}

/** Pull Secrets are not among them: only the kubelet reads those, and sends them to allowed registries. */
export function clusterReferences({ spec: { tls, auth, bootstrap } }: EtcdCluster): References {
  const { source, encryption } = bootstrap?.restore ?? {};
  const store = source ? storeReferences(source, encryption) : { secrets: [], claims: [] };
  const own = named(tls?.client?.serverSecretRef, tls?.client?.operatorClientSecretRef, tls?.peer?.secretRef);
  return { secrets: [...own, ...named(auth?.rootCredentialsSecretRef), ...store.secrets], claims: store.claims };
}

export const mayReference = (labels: Readonly<Record<string, string>> = {}): boolean =>
  labels[REFERENCE_LABEL] === 'true';

export const lacksLabel = (kind: string, name: string): string =>
  `${kind} ${name} does not carry the label ${REFERENCE_LABEL}=true, without which no spec may name it: its owner has to set the label`;

export const lacksObject = (kind: string, name: string): string =>
  `${kind} ${name} does not exist: create it, with the label ${REFERENCE_LABEL}=true`;

const matches = (pattern: string, key: string): boolean =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  ).test(key);

export const isDeniedKey = (key: string, { deniedMetadata }: Tenancy): boolean =>
  deniedMetadata.some((pattern) => matches(pattern, key));

type Described = { readonly spec: { readonly additionalMetadata?: AdditionalMetadata } };

/** The same object without keys that the administrator denies, and those keys. */
export function withoutDenied<T extends Described>(
  object: T,
  tenancy: Tenancy,
): { readonly object: T; readonly denied: readonly string[] } {
  const { labels = {}, annotations = {} } = object.spec.additionalMetadata ?? {};
  const denied = Object.keys({ ...labels, ...annotations }).filter((key) => isDeniedKey(key, tenancy));
  if (denied.length === 0) return { object, denied };
  const kept = (entries: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(entries).filter(([key]) => !denied.includes(key)));
  const additionalMetadata = { labels: kept(labels), annotations: kept(annotations) };
  return { object: { ...object, spec: { ...object.spec, additionalMetadata } }, denied };
}
