/**
 * How many clusters are defragmented at once: a thousand policies with one schedule must not take a member away from each cluster
 * in the same minute, and rewrite a thousand databases on disks that they share.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdDefrag } from '../../api/etcd-defrag.ts';
import { type DefragFleet, hasStarted, isUnderWay } from '../../domain/defragmentation.ts';
import { keyOf, refKey } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';

const clusterOf = ({ metadata, spec }: EtcdDefrag): string =>
  refKey({ namespace: metadata.namespace ?? '', name: spec.clusterRef.name ?? '' });

export class DefragmentationLedger {
  readonly #defrags: Pick<Store<EtcdDefrag>, 'all'>;
  readonly #limit: number;
  /** Clusters whose run starts in a plan that is being executed, and the uid of its EtcdDefrag: the cache does not have it yet. */
  readonly #claimed = new Map<string, string>();
  /** Clusters that wait for a place, the first of them for the longest. */
  readonly #waiting = new Set<string>();

  constructor(defrags: Pick<Store<EtcdDefrag>, 'all'>, limit: number) {
    this.#defrags = defrags;
    this.#limit = limit;
  }

  /** As one cluster observes it: the others. */
  fleet(subject: EtcdCluster): DefragFleet {
    const running = new Set<string>();
    for (const defrag of this.#defrags.all()) {
      const key = clusterOf(defrag);
      if (isUnderWay(defrag)) running.add(key);
      if (hasStarted(defrag) && this.#claimed.get(key) === defrag.metadata.uid) this.#claimed.delete(key);
    }
    for (const key of this.#claimed.keys()) running.add(key);
    running.delete(keyOf(subject));
    return { running: running.size, limit: this.#limit };
  }

  /**
   * Claims the place of the run that a plan starts, by the uid of its EtcdDefrag, before it is executed. False: clusters that were
   * reconciled meanwhile have taken the last one. A claim whose plan has written nothing has no use in the next reconcile.
   */
  claim(cluster: EtcdCluster, run: string | undefined, waits: boolean): boolean {
    const key = keyOf(cluster);
    this.#claimed.delete(key);
    if (waits) this.#waiting.add(key);
    else this.#waiting.delete(key);
    if (run === undefined) return true;
    const { running, limit } = this.fleet(cluster);
    if (running >= limit) return false;
    this.#claimed.set(key, run);
    return true;
  }

  /** The cluster that a place is for that has just become free. */
  next(): string | undefined {
    const [key] = this.#waiting;
    if (key !== undefined) this.#waiting.delete(key);
    return key;
  }

  forget(key: string): void {
    this.#claimed.delete(key);
    this.#waiting.delete(key);
  }
}
