/** The Certificates that a cluster requests from cert-manager, and findings about their state. */

import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { applicationRequestName, CERT_MANAGER_GROUP, clusterLabels, etcdClusters } from '../../../api/names.ts';
import {
  type Certificate,
  certificateKind,
  type TheirCondition,
  theirCondition,
} from '../../../domain/cert-manager.ts';
import {
  type CertificateRequirement,
  certificatesOf,
  EXTENDED_USAGES,
  namesOf,
} from '../../../domain/certificate-requirements.ts';
import { identity, ownedBy } from '../../../domain/ownership.ts';
import { APPROVAL_MS, CERTIFICATE_OBSERVED_MS, CERTIFICATE_RENEWAL_MS } from '../../../domain/timing.ts';
import type { Finding } from '../../../pki/findings.ts';
import type { CertificateHolding, CredentialsFacts } from './observed.ts';

const KEY_USAGES = ['digital signature', 'key encipherment'] as const;

/** X.509 allows no longer ones. */
const MAX_COMMON_NAME = 64;
const isAddress = (host: string): boolean => /^[\d.]+$/.test(host);

type RequestedNeed = CertificateRequirement &
  Required<Pick<Extract<CertificateRequirement, { from: 'user' }>, 'requested'>>;
const isRequested = (need: CertificateRequirement): need is RequestedNeed =>
  need.from === 'user' && need.requested !== undefined;

/** The certificates that are requested from cert-manager. */
export const requestedNeeds = (cluster: EtcdCluster): readonly RequestedNeed[] =>
  certificatesOf(cluster).filter(isRequested);

export function certificateFor(cluster: EtcdCluster, need: RequestedNeed, domain: string): Certificate {
  const { certificate: name, issuer } = need.requested;
  const hosts = namesOf(cluster, need.role, domain).all;
  const [ipAddresses, dnsNames] = [hosts.filter(isAddress), hosts.filter((host) => !isAddress(host))];
  return {
    apiVersion: 'cert-manager.io/v1',
    kind: certificateKind.kind,
    metadata: {
      name,
      namespace: identity(cluster).namespace,
      labels: clusterLabels(identity(cluster).name),
      ownerReferences: ownedBy(etcdClusters, cluster),
    },
    spec: {
      secretName: need.secret,
      commonName: name.slice(0, MAX_COMMON_NAME),
      ...(dnsNames.length > 0 && { dnsNames }),
      ...(ipAddresses.length > 0 && { ipAddresses }),
      usages: [...EXTENDED_USAGES[need.role], ...KEY_USAGES],
      privateKey: { algorithm: 'RSA', size: 2048 },
      issuerRef: { group: CERT_MANAGER_GROUP, kind: issuer.kind ?? 'Issuer', name: issuer.name },
    },
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** A user may add names, and set fields that the operator does not, such as a duration. */
function carries(is: unknown, want: unknown): boolean {
  if (Array.isArray(want)) return Array.isArray(is) && want.every((each) => is.includes(each));
  if (typeof want !== 'object' || want === null) return is === want;
  return Object.entries(want).every(([key, value]) => carries((is as Fields | undefined)?.[key], value));
}

/** The fields that were changed or removed, with their wanted values. */
const lacking = (is: Fields = {}, want: Fields = {}): Fields =>
  Object.fromEntries(
    Object.entries(want)
      .filter(([key, value]) => !carries(is[key], value))
      .map(([key, value]) => [
        key,
        Array.isArray(value) && Array.isArray(is[key]) ? [...new Set([...(is[key] as unknown[]), ...value])] : value,
      ]),
  );

/** The patch that restores the wanted fields; Certificates of an earlier operator lack the labels. */
export function correctionOf(is: Certificate, wanted: Certificate): Fields | undefined {
  const labels = lacking(is.metadata.labels, wanted.metadata.labels);
  const spec = lacking({ ...is.spec }, { ...wanted.spec });
  return Object.keys(labels).length + Object.keys(spec).length === 0 ? undefined : { metadata: { labels }, spec };
}

export const isRequestPending = ({ is }: Finding): boolean => is === 'certificatePending';

const pending = (secret: string, certificate: string, message: string): Finding => ({
  is: 'certificatePending',
  secret,
  certificate,
  message,
});

/** Findings about Secrets, and about the Certificates that write them; a Secret that is not issued yet has one finding only. */
export function withIssuance(c: CredentialsFacts, findings: readonly Finding[]): readonly Finding[] {
  const issued = issuanceFindings(c);
  const awaited = new Map(requestedNeeds(c.cluster).map((need) => [need.secret, need.requested.certificate]));
  const others = issued.flatMap((f) => (f.is === 'applicationForeign' ? [f.secret] : []));
  const rest = findings.flatMap((finding): readonly Finding[] => {
    if (others.includes(finding.secret)) return []; // what another Certificate writes is not the operator's to judge
    const certificate = finding.is === 'secretMissing' ? awaited.get(finding.secret) : undefined;
    if (certificate === undefined) return [finding];
    if (issued.some(({ secret }) => secret === finding.secret)) return [];
    return [pending(finding.secret, certificate, `Secret ${finding.secret} does not exist yet`)];
  });
  return [...issued, ...rest];
}

export function issuanceFindings(c: CredentialsFacts): readonly Finding[] {
  const { issuance } = c;
  const needs = issuance ? requestedNeeds(c.cluster) : [];
  if (issuance?.is === 'there') return issuance.certificates.flatMap((held) => findingsAbout(held, c));
  if (issuance?.is === 'missing') return needs.map(({ secret }) => ({ is: 'certManagerMissing', secret }));
  // For a running cluster, nothing is reported until the cache has synced.
  const message =
    'the operator has not listed the Certificates yet; if this lasts, check its RBAC permissions for cert-manager.io in the chart';
  return c.formed ? [] : needs.map(({ secret, requested }) => pending(secret, requested.certificate, message));
}

/** Issuers choose this text, and the API server rejects a condition message that is too long. */
const MAX_TEXT = 400;

function findingsAbout(held: CertificateHolding, c: CredentialsFacts): readonly Finding[] {
  const { now } = c;
  const { wanted, holding } = held;
  const about = { secret: wanted.spec.secretName, certificate: wanted.metadata.name ?? '' };
  if (holding.is === 'foreign') {
    const { owner } = holding;
    return about.certificate === applicationRequestName(identity(c.cluster).name)
      ? [{ is: 'applicationForeign', secret: about.secret, owner, object: `Certificate ${about.certificate}` }]
      : [{ is: 'certificateForeign', ...about, owner }];
  }
  if (holding.is === 'unknown' && !c.formed)
    return [{ is: 'certificatePending', ...about, message: `it cannot be read: ${holding.message}` }];
  if (holding.is !== 'ours') return [];
  const { metadata } = holding.object;
  const condition = theirCondition(holding.object, 'Ready');
  const ready =
    (condition?.observedGeneration ?? Number.POSITIVE_INFINITY) >= (metadata.generation ?? 0) ? condition : undefined; // otherwise it is about an earlier spec
  const trouble = troubleOf(held, now)?.slice(0, MAX_TEXT);
  if (ready?.status === 'True') {
    const underWay = held.request !== undefined && !isOlder(held.request.metadata, CERTIFICATE_RENEWAL_MS, now);
    return trouble === undefined || underWay ? [] : [{ is: 'renewalFailing', ...about, message: trouble }];
  }
  if (trouble !== undefined) return [{ is: 'certificateNotReady', ...about, message: trouble }];
  const unnoticed = 'cert-manager has not processed it yet';
  if (!condition && isOlder(metadata, CERTIFICATE_OBSERVED_MS, now))
    return [{ is: 'certificateNotReady', ...about, message: `${unnoticed}: check that its controller is running` }];
  return [{ is: 'certificatePending', ...about, message: ready?.message?.slice(0, MAX_TEXT) ?? unnoticed }];
}

const isOlder = ({ creationTimestamp = '' }: Certificate['metadata'], ms: number, now: number): boolean =>
  now - Date.parse(creationTimestamp) > ms;

/** Why it is not issued, in the words of the issuer or of the approver. */
function troubleOf({ holding, request }: CertificateHolding, now: number): string | undefined {
  const failed = holding.is === 'ours' ? theirCondition(holding.object, 'Issuing') : undefined;
  if (failed?.status === 'False' && failed.reason === 'Failed') return failed.message;
  if (!request) return undefined;
  const name = `CertificateRequest ${request.metadata.name}`;
  const messageOf = ({ reason, message }: TheirCondition): string => message ?? reason ?? '';
  for (const type of ['Denied', 'InvalidRequest']) {
    const refused = theirCondition(request, type);
    if (refused?.status === 'True') return `${name} was refused: ${messageOf(refused)}`;
  }
  const ready = theirCondition(request, 'Ready');
  if (ready?.status === 'False') return `${name}: ${messageOf(ready)}`;
  const approved = theirCondition(request, 'Approved')?.status === 'True';
  return approved || !isOlder(request.metadata, APPROVAL_MS, now) ? undefined : `${name} is waiting for approval`;
}
