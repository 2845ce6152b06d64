/** Which CA bundles the Pods of a cluster mount, as the caches have them. */
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { EtcdMember } from '../api/etcd-member.ts';
import { CLUSTER_LABEL, type EtcdPortName } from '../api/names.ts';
import { memberHost } from '../domain/member-address.ts';
import { controllerOf } from '../domain/ownership.ts';
import type { Pod } from '../gen/kube.ts';
import { refKey } from '../kube/object.ts';
import type { Store } from '../kube/store.ts';
import { type Mounted, mountIn } from './evaluate/mounts.ts';

interface Stores {
  readonly members: Store<EtcdMember>;
  readonly pods: Store<Pod>;
}

export function mountedBy({ members, pods }: Stores, cluster: EtcdCluster): Mounted {
  const { namespace = '', name = '' } = cluster.metadata;
  const podOf = (member: string): Pod | undefined => pods.get(refKey({ namespace, name: member }));
  return mountedIn(cluster, members.byIndex(namespace, CLUSTER_LABEL, name), podOf);
}

/** The same for a caller without caches. `podOf`: by the name of an EtcdMember. */
export function mountedIn(
  cluster: EtcdCluster,
  members: readonly EtcdMember[],
  podOf: (member: string) => Pod | undefined,
): Mounted {
  const own = members.filter((m) => controllerOf(m)?.uid === cluster.metadata.uid);
  const found = own.map((m) => {
    const pod = podOf(m.metadata.name ?? '');
    return {
      dormant: m.spec.dormant === true,
      pod: pod && controllerOf(pod)?.uid === m.metadata.uid ? pod : undefined,
    };
  });
  const running = found.flatMap(({ pod }) => pod ?? []);
  const named = (part: EtcdPortName): readonly string[] =>
    [...new Set(running.flatMap((pod) => mountIn(pod, part, cluster)?.bundle ?? []))].sort();
  return {
    running: running.length > 0,
    complete: found.every(({ dormant, pod }) => dormant || pod !== undefined),
    hosts: own.map(memberHost),
    bundles: { client: named('client'), peer: named('peer') },
  };
}
