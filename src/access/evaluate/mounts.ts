/** Which Secrets of its cluster a Pod mounts, from its spec: that part is immutable. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdPortName, trustName } from '../../api/names.ts';
import type { Pod } from '../../gen/kube.ts';
import type { Mount } from './view.ts';

/** A Pod of an earlier operator names no bundle Secret: it has loaded the one that is recorded as assumed. */
export function mountIn(pod: Pod, part: EtcdPortName, { metadata, status }: EtcdCluster): Mount | undefined {
  const volume = pod.spec?.volumes?.find(({ name }) => name === `tls-${part}`);
  if (!volume) return undefined;
  const from = (path: string): string | undefined =>
    volume.projected?.sources?.find(({ secret }) => secret?.items?.some((item) => item.path === path))?.secret?.name;
  const assumed = status?.trust?.assumed?.[part];
  const bundle = from('ca.crt') ?? (assumed && trustName(metadata.name ?? '', part, assumed));
  return { leaf: from('tls.crt') ?? volume.secret?.secretName ?? '', ...(bundle !== undefined && { bundle }) };
}

export interface Mounted {
  /** At least one Pod exists. */
  readonly running: boolean;
  /** Every member that is not paused has a Pod: none is about to start with a previous CA bundle. */
  readonly complete: boolean;
  /** The DNS names of its members. */
  readonly hosts?: readonly string[];
  /** Names of Secrets, without duplicates. */
  readonly bundles: Readonly<Record<EtcdPortName, readonly string[]>>;
}
