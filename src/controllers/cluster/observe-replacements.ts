/**
 * Counts replacements over all clusters. Those that are recorded in a status survive a restart of the operator; those that were
 * just claimed are not in the cache yet, and many clusters are reconciled at once.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { REPLACEMENT_RATE_MS } from '../../domain/timing.ts';
import { keyOf } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { limitFor, type Replacement, type ReplacementRate, recentReplacements } from './replacement-rate.ts';

export class ReplacementLedger {
  readonly #clusters: Pick<Store<EtcdCluster>, 'all'>;
  readonly #perHour: number;
  /** By cluster and member: when its replacement was claimed. Kept for the hour, also when the cluster is deleted meanwhile. */
  readonly #claimed = new Map<string, number>();

  readonly #clockAheadMs: (withinMs: number) => number;

  /** `clockAheadMs`: how far the wall clock has jumped ahead in this time. */
  constructor(
    clusters: Pick<Store<EtcdCluster>, 'all'>,
    perHour: number,
    clockAheadMs: (withinMs: number) => number = () => 0,
  ) {
    this.#clusters = clusters;
    this.#perHour = perHour;
    this.#clockAheadMs = clockAheadMs;
  }

  /** As `subject` observes it, without its own claims that it has not recorded: nothing was deleted for them, and they are still its own. */
  rate(wallMs: number, subject?: EtcdCluster): ReplacementRate {
    let clusters = 0;
    const now = wallMs - this.#clockAheadMs(REPLACEMENT_RATE_MS); // a clock that jumps ahead must not start another hour
    for (const [id, at] of this.#claimed) if (now - at >= REPLACEMENT_RATE_MS) this.#claimed.delete(id);
    const own = subject && idOf(subject, { member: '' });
    const replaced = new Map([...this.#claimed].filter(([id]) => own === undefined || !id.startsWith(own)));
    for (const cluster of this.#clusters.all()) {
      clusters++;
      for (const each of recentReplacements(cluster, now)) replaced.set(idOf(cluster, each), Date.parse(each.at));
    }
    const limit = limitFor(this.#perHour, clusters);
    const times = [...replaced.values()].toSorted((a, b) => a - b);
    const first = times[Math.max(0, times.length - limit)] ?? now;
    return { used: times.length, limit, nextAt: first + REPLACEMENT_RATE_MS };
  }

  /**
   * Claims what a plan records before it is executed, without waiting for anything. False: the limit was reached by clusters that
   * were reconciled meanwhile. A second attempt for a member needs no further claim, and one for another member takes over the
   * claim: otherwise a cluster that observes a free place would be refused it, and be reconciled in a loop.
   */
  claim(cluster: EtcdCluster, latch: Partial<EtcdClusterStatus> | undefined, now: number): boolean {
    const { used, limit } = this.rate(now, cluster);
    const recorded = recentReplacements(cluster, now).map(({ member }) => member);
    const added = (latch?.repair?.recent ?? []).filter(({ member }) => !recorded.includes(member));
    if (added.length > 0 && used + added.length > limit) return false;
    const own = idOf(cluster, { member: '' });
    const isUnrecorded = (id: string): boolean => id.startsWith(own) && !recorded.includes(id.slice(own.length));
    if (added.length > 0) for (const id of this.#claimed.keys()) if (isUnrecorded(id)) this.#claimed.delete(id);
    for (const each of added) this.#claimed.set(idOf(cluster, each), now);
    return true;
  }
}

/** With the uid: what an earlier cluster of the same name has lost is not its own. */
const idOf = (cluster: EtcdCluster, { member }: Pick<Replacement, 'member'>): string =>
  `${keyOf(cluster)}/${cluster.metadata.uid}/${member}`;
