/** What the Pods of a cluster say about whom their members trust: it is in their specs, which nobody can change. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { CLUSTER_LABEL, type Part, trustName } from '../api/names.ts';
import { controllerOf } from '../domain/ownership.ts';
import type { Pod } from '../gen/kube.ts';
import { refKey } from '../kube/object.ts';
import type { Store } from '../kube/store.ts';
import type { Mount } from './evaluate/view.ts';

export function mountIn(pod: Pod, part: Part): Mount | undefined {
  const volume = pod.spec?.volumes?.find(({ name }) => name === `tls-${part}`);
  if (!volume) return undefined;
  const from = (path: string): string | undefined =>
    volume.projected?.sources?.find(({ secret }) => secret?.items?.some((item) => item.path === path))?.secret?.name;
  const bundle = from('ca.crt');
  return { leaf: from('tls.crt') ?? volume.secret?.secretName ?? '', ...(bundle !== undefined && { bundle }) };
}

export interface Mounted {
  /** There is a Pod. */
  readonly running: boolean;
  /** Every member that is to run has one: nobody starts just now with what was recorded before. */
  readonly complete: boolean;
  /** Names of Secrets, each once. */
  readonly bundles: Readonly<Record<Part, readonly string[]>>;
}

export const NOTHING_MOUNTED: Mounted = { running: false, complete: true, bundles: { client: [], peer: [] } };

interface Stores {
  readonly members: Store<EtcdMember>;
  readonly pods: Store<Pod>;
}

export function mountedBy(
  { members, pods }: Stores,
  { metadata: { namespace = '', name = '', uid }, status }: EtcdCluster,
): Mounted {
  const own = members.labelled(namespace, CLUSTER_LABEL, name).filter((m) => controllerOf(m)?.uid === uid);
  const found = own.map((m) => {
    const pod = pods.get(refKey({ namespace, name: m.metadata.name ?? '' }));
    return {
      dormant: m.spec.dormant === true,
      pod: pod && controllerOf(pod)?.uid === m.metadata.uid ? pod : undefined,
    };
  });
  const running = found.flatMap(({ pod }) => pod ?? []);
  const named = (part: Part): readonly string[] => {
    const assumed = status?.trust?.assumed?.[part];
    const names = running.flatMap((pod) => {
      const mount = mountIn(pod, part);
      if (!mount || (mount.bundle === undefined && assumed === undefined)) return [];
      return mount.bundle ?? trustName(name, part, assumed ?? '');
    });
    return [...new Set(names)].sort();
  };
  return {
    running: running.length > 0,
    complete: found.every(({ dormant, pod }) => dormant || pod !== undefined),
    bundles: { client: named('client'), peer: named('peer') },
  };
}
