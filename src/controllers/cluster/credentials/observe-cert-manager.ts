/** Gathers what cert-manager was asked for, and how far it has come: from the cache, and by name what the cache does not hold. */

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
import { holding, identity } from '../../../domain/ownership.ts';
import type { Client } from '../../../kube/client.ts';
import { type Resource, refKey } from '../../../kube/object.ts';
import type { Store } from '../../../kube/store.ts';
import { tryGet } from '../../../kube/try-get.ts';
import { type CertificateHolding, type Issuance } from '../observed.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';

export const certificates: Resource<Certificate> = certificateKind;
const requests: Resource<CertificateRequest> = certificateRequestKind;

interface IssuingPorts {
  readonly client: Pick<Client, 'get'>;
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
  const held = await Promise.all(wanted.map((each) => look(ports, cluster, each, signal)));
  return { issuance: { is: 'there', certificates: held } };
}

/** The cache holds only what carries our label: those of an earlier operator do not, and neither do those of others. */
async function look(
  { client, certificates: cache }: IssuingPorts,
  cluster: EtcdCluster,
  wanted: Certificate,
  signal: AbortSignal,
): Promise<CertificateHolding> {
  const { namespace, uid } = identity(cluster);
  const ref = { namespace, name: wanted.metadata.name ?? '' };
  const cached = cache.get(refKey(ref));
  const read = cached ? ({ ok: true, object: cached } as const) : await tryGet(client, certificates, ref, signal);
  if (!read.ok) return { wanted, holding: { is: 'unknown', why: read.why } };
  const held = holding(read.object, uid);
  if (held.is !== 'ours' || isIssued(held.object)) return { wanted, holding: held };
  // It is there for words only: that it cannot be read is no reason to leave a cluster alone.
  const ask = client.get(requests, { namespace, name: nextRequestName(held.object) }, signal);
  const request = await ask.catch(() => undefined);
  return { wanted, holding: held, ...(request && { request }) };
}

/** Nothing is under way. */
const isIssued = (certificate: Certificate): boolean =>
  theirCondition(certificate, 'Ready')?.status === 'True' && theirCondition(certificate, 'Issuing')?.status !== 'True';
