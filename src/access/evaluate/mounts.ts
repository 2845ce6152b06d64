/** Which Secrets of its cluster a Pod mounts, from its spec: that part is immutable. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { type EtcdPortName, trustName } from '../../api/names.ts';
import type { Container, Pod, Volume } from '../../gen/kube.ts';
import type { Mount } from './view.ts';

const etcdOf = (pod: Pod): Container | undefined => pod.spec?.containers.find(({ name }) => name === 'etcd');

/** The value of a flag that is written `--name=value` or `--name value`. Pods that etcd-migrate has adopted have flags in `args`. */
function flag({ command = [], args = [] }: Container, name: string): string | undefined {
  const words = [...command, ...args];
  const at = words.findIndex((word) => word === name || word.startsWith(`${name}=`));
  return words[at] === name ? words[at + 1] : words[at]?.slice(name.length + 1);
}

/**
 * The volume of the certificate that etcd serves on this port. Pods that etcd-migrate has adopted call it as they like, and without it
 * a CA rotation would take them for members without TLS, which need no restart: they would refuse all others in the end.
 */
function volumeOf(pod: Pod, part: EtcdPortName): Volume | undefined {
  const volumes = pod.spec?.volumes ?? [];
  const named = volumes.find(({ name }) => name === `tls-${part}`);
  const etcd = etcdOf(pod);
  const path = etcd && flag(etcd, part === 'peer' ? '--peer-cert-file' : '--cert-file');
  if (named !== undefined || path === undefined) return named;
  const isAbove = (folder: string): boolean => path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
  const above = (etcd?.volumeMounts ?? []).filter(({ mountPath }) => isAbove(mountPath));
  const [mount] = above.toSorted((a, b) => b.mountPath.length - a.mountPath.length);
  return volumes.find(({ name }) => name === mount?.name);
}

/** A Pod of an earlier operator names no bundle Secret: it has loaded the one that is recorded as assumed. */
export function mountIn(pod: Pod, part: EtcdPortName, { metadata, status }: EtcdCluster): Mount | undefined {
  const volume = volumeOf(pod, part);
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
