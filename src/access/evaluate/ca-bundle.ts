/** Whom the members of a cluster trust: they read it when they start, and it is recorded, or a lost Secret would take it along. */
import { createHash, type X509Certificate } from 'node:crypto';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdPortName } from '../../api/names.ts';
import { certificatesIn, leadsTo } from '../../pki/pem.ts';
import { costly } from '../../pki/yielding.ts';

export interface CABundle {
  /** The same for the same authorities, in whatever order and with whatever around them. */
  readonly digest: string;
  readonly certificates: readonly X509Certificate[];
  /** The same text for the same digest. */
  readonly text: string;
}

/** All authorities in these texts together; `undefined` when there is none. */
export const caBundleIn = (...texts: readonly string[]): CABundle | undefined =>
  costly(texts.join(''), 'trust', () => trustOf(texts));

function trustOf(texts: readonly string[]): CABundle | undefined {
  const byPrint = new Map(texts.flatMap(certificatesIn).map((c) => [c.fingerprint256, c]));
  const prints = [...byPrint.keys()].sort();
  if (prints.length === 0) return undefined;
  const certificates = prints.flatMap((print) => byPrint.get(print) ?? []);
  return {
    digest: createHash('sha256').update(prints.join()).digest('hex'),
    certificates,
    text: certificates.map((c) => c.toString()).join(''),
  };
}

export const digestOf = (pem: string): string | undefined => caBundleIn(pem)?.digest;

/** Whether everybody who trusts the one also trusts the other. */
export const contains = (wide: CABundle, narrow: CABundle): boolean => {
  const prints = new Set(wide.certificates.map(({ fingerprint256 }) => fingerprint256));
  return narrow.certificates.every(({ fingerprint256 }) => prints.has(fingerprint256));
};

/** Whether somebody with this trust takes the first of these certificates, which came with the others. */
export const accepts = (
  trust: Pick<CABundle, 'certificates'>,
  [leaf, ...others]: readonly X509Certificate[],
): boolean => leaf !== undefined && leadsTo(leaf, others, trust.certificates) !== undefined;

/** Whether who trusts only one of these and takes the one chain may take the other as well. */
export const sharesCA = (
  { certificates }: CABundle,
  one: readonly X509Certificate[],
  other: readonly X509Certificate[],
): boolean => certificates.some((only) => [one, other].every((chain) => accepts({ certificates: [only] }, chain)));

/** Clusters that an earlier operator made have none at first. */
export const recordedDigest = ({ status }: EtcdCluster, part: EtcdPortName): string | undefined =>
  status?.trust?.[part];
