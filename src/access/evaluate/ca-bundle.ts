/** The CA bundles of a cluster. etcd loads one when it starts; its digest is recorded in the status, because a lost Secret would lose it. */
import { createHash, type X509Certificate } from 'node:crypto';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdPortName } from '../../api/names.ts';
import { certificatesIn, leadsTo } from '../../pki/pem.ts';
import { costly } from '../../pki/yielding.ts';

export interface CABundle {
  /** The same for the same CAs, in any order and with any text around them. */
  readonly digest: string;
  readonly certificates: readonly X509Certificate[];
  /** The same text for the same digest. */
  readonly text: string;
}

/** The CAs of all these texts; `undefined` when there is none. */
export const caBundleIn = (...texts: readonly string[]): CABundle | undefined =>
  costly(texts.join(''), 'trust', () => bundleOf(texts));

function bundleOf(texts: readonly string[]): CABundle | undefined {
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

/** Whether the wide bundle has every CA of the narrow one. */
export const contains = (wide: CABundle, narrow: CABundle): boolean => {
  const prints = new Set(wide.certificates.map(({ fingerprint256 }) => fingerprint256));
  return narrow.certificates.every(({ fingerprint256 }) => prints.has(fingerprint256));
};

/** Whether this CA bundle verifies the first certificate; the others are its intermediates. */
export const accepts = (
  trust: Pick<CABundle, 'certificates'>,
  [leaf, ...others]: readonly X509Certificate[],
): boolean => leaf !== undefined && leadsTo(leaf, others, trust.certificates) !== undefined;

/** Whether one CA of the bundle verifies both chains: then a client that trusts only that CA accepts either. */
export const sharesCA = (
  { certificates }: CABundle,
  one: readonly X509Certificate[],
  other: readonly X509Certificate[],
): boolean => certificates.some((only) => [one, other].every((chain) => accepts({ certificates: [only] }, chain)));

/** No handshake is accepted by it any more: a chain is as valid as its CA. */
export const isExpired = ({ certificates }: CABundle, now: number): boolean =>
  certificates.every(({ validToDate }) => validToDate.getTime() <= now);

/** Absent at first for clusters that an earlier operator created. */
export const recordedDigest = ({ status }: EtcdCluster, part: EtcdPortName): string | undefined =>
  status?.trust?.[part];
