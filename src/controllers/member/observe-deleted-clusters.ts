/** The deletionPolicy of clusters whose deletion this process has seen: no object has it any more. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { DeletionPolicy } from '../../api/storage.ts';
import type { Store } from '../../kube/store.ts';

/** Members are released within seconds after their cluster; a policy that is forgotten costs a day of quarantine, and no data. */
const MAX_KEPT = 10_000;

export class DeletedPolicies {
  readonly #policies = new Map<string, DeletionPolicy>();

  /** Only from events of deletions: an object that a new list lacks may have been edited before it was deleted. */
  constructor(clusters: Pick<Store<EtcdCluster>, 'onDeletion'>) {
    clusters.onDeletion(({ metadata, spec }) => this.#keep(metadata.uid ?? '', spec.deletionPolicy ?? 'Delete'));
  }

  #keep(uid: string, policy: DeletionPolicy): void {
    this.#policies.set(uid, policy);
    const [oldest] = this.#policies.keys();
    if (this.#policies.size > MAX_KEPT && oldest !== undefined) this.#policies.delete(oldest);
  }

  of(uid: string): DeletionPolicy | undefined {
    return this.#policies.get(uid);
  }
}
