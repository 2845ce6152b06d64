/** Reads the Certificates of a cluster and their state: from the cache, and by name what the cache does not hold. */

import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import {
  asksCertManager,
  type Certificate,
  type CertificateRequest,
  certificateKind,
  certificateRequestKind,
  nextRequestName,
  theirCondition,
} from '../../../domain/cert-manager.ts';
import { identity } from '../../../domain/ownership.ts';
import type { Client } from '../../../kube/client.ts';
import type { Resource } from '../../../kube/object.ts';
import type { Store } from '../../../kube/store.ts';
import { observeObject } from '../observe-objects.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';
import type { CertificateHolding, Issuance } from './observed.ts';

export const certificates: Resource<Certificate> = certificateKind;
const requests: Resource<CertificateRequest> = certificateRequestKind;

export interface IssuingPorts {
  readonly client: Pick<Client, 'get'>;
  /** Watched once a cluster requests certificates from cert-manager. */
  readonly certificates: Store<Certificate>;
}

export async function observeIssuance(
  ports: IssuingPorts,
  cluster: EtcdCluster,
  domain: string,
  signal: AbortSignal,
): Promise<{ readonly issuance?: Issuance }> {
  if (!asksCertManager(cluster)) return {};
  if (ports.certificates.missing) return { issuance: { is: 'missing' } };
  if (!ports.certificates.synced) return { issuance: { is: 'unknown' } };
  const wanted = requestedNeeds(cluster).map((need) => certificateFor(cluster, need, domain));
  const held = await Promise.all(wanted.map((each) => readCertificate(ports, cluster, each, signal)));
  return { issuance: { is: 'there', certificates: held } };
}

/** The cache holds only objects with the label of the operator: Certificates of an earlier operator and foreign ones lack it. */
async function readCertificate(
  { client, certificates: cache }: IssuingPorts,
  cluster: EtcdCluster,
  wanted: Certificate,
  signal: AbortSignal,
): Promise<CertificateHolding> {
  const { namespace } = identity(cluster);
  const held = await observeObject(client, cache, cluster, wanted.metadata.name ?? '', signal);
  if (held.is !== 'ours' || isIssued(held.object)) return { wanted, holding: held };
  // Only for the message: a CertificateRequest that cannot be read must not keep the cluster from being reconciled.
  const ask = client.get(requests, { namespace, name: nextRequestName(held.object) }, signal);
  const request = await ask.catch(() => undefined);
  return { wanted, holding: held, ...(request && { request }) };
}

/** Issued, and not being issued again. */
const isIssued = (certificate: Certificate): boolean =>
  theirCondition(certificate, 'Ready')?.status === 'True' && theirCondition(certificate, 'Issuing')?.status !== 'True';
