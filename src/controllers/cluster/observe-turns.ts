/**
 * Which clusters roll edits out. What is recorded in a status survives a restart of the operator; a turn that was just taken is not
 * in the cache yet, and many clusters are reconciled at once.
 */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { findCondition } from '../../domain/conditions.ts';
import { TURN_RECORDED_MS } from '../../domain/timing.ts';
import { keyOf } from '../../kube/object.ts';
import type { Store } from '../../kube/store.ts';
import { holdsTurn, type Turns, WAITING_FOR_TURN } from './rollout/turn.ts';

export class TurnLedger {
  readonly #clusters: Pick<Store<EtcdCluster>, 'all'>;
  readonly #limit: number;
  /** By cluster: when its turn was taken, until the cache shows it. */
  readonly #taken = new Map<string, number>();

  /** `limit`: 0 is none. */
  constructor(clusters: Pick<Store<EtcdCluster>, 'all'>, limit: number) {
    this.#clusters = clusters;
    this.#limit = limit;
  }

  /** As `subject` observes it; `undefined` without a limit. */
  turns(now: number, subject: EtcdCluster): Turns | undefined {
    if (this.#limit === 0) return undefined;
    for (const [key, at] of this.#taken) if (now - at >= TURN_RECORDED_MS) this.#taken.delete(key);
    const others = new Set(this.#taken.keys());
    for (const cluster of this.#clusters.all()) if (holdsTurn(cluster, now)) others.add(keyOf(cluster));
    others.delete(keyOf(subject));
    return { others: [...others].toSorted(), limit: this.#limit };
  }

  /** Claims the turn that a plan records, before it is executed. False: clusters that were reconciled meanwhile have taken the last one. */
  claim(cluster: EtcdCluster, latch: Partial<EtcdClusterStatus> | undefined, now: number): boolean {
    if (latch?.turnAt === undefined || latch.turnAt === cluster.status?.turnAt) return true;
    const turns = this.turns(now, cluster); // reads every cluster, and most plans take no turn
    if (!turns) return true;
    if (turns.others.length >= turns.limit) return false;
    this.#taken.set(keyOf(cluster), now);
    return true;
  }

  /** Clusters that may take the turn of one that has finished, the one that has waited longest first. */
  waiting(before: EtcdCluster | undefined, after: EtcdCluster | undefined, now: number): readonly string[] {
    if (!before || !holdsTurn(before, now) || (after && holdsTurn(after, now))) return [];
    this.#taken.delete(keyOf(before));
    return [...this.#clusters.all()]
      .filter(({ status }) => findCondition(status?.conditions, 'Progressing')?.reason === WAITING_FOR_TURN)
      .toSorted((a, b) => sinceOf(a).localeCompare(sinceOf(b)))
      .slice(0, this.#limit)
      .map(keyOf);
  }
}

const sinceOf = ({ status }: EtcdCluster): string => status?.rollout?.since ?? '';
