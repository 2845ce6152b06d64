/**
 * Sessions by cluster and member. One of each cluster is kept for the next pass; of the others so many as memory allows,
 * those that were used last. They are closed when nobody has used them for a while, when their member goes, and, once their
 * calls have ended, when the certificates change.
 * A member that fails is asked more and more rarely, if the client wants that.
 */
import type { BackoffOptions } from '../lib/backoff.ts';
import { afterCall, type Circuit, CLOSED, refusal } from './circuit.ts';
import { type EtcdError, EtcdFailure } from './errors.ts';
import type { OpenSession, Session, TlsMaterial } from './transport.ts';

export interface PoolOptions {
  readonly monotonic: () => number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly open: OpenSession;
  /** A session beside the kept one is closed after this time without a call. */
  readonly idleMs: number;
  /** So many sessions beside the kept ones may wait for their next call, in all clusters together. */
  readonly spare: number;
  /** Nobody asks about the cluster any more: its last session is closed too. */
  readonly forgetMs: number;
  /** Without it every call goes to the member, however often it has failed. */
  readonly backoff?: BackoffOptions | undefined;
}

export interface SessionCounts {
  readonly clusters: number;
  /** Connected now. */
  readonly open: number;
  /** Replaced, with calls that have not ended yet. */
  readonly draining: number;
  /** Members that are asked with pauses only. */
  readonly unreachable: number;
}

export interface Taken {
  readonly session: Session;
  /**
   * The call has ended. `alone`: the member needs nobody else for this answer. Tells since when no call to it has gone
   * well, in milliseconds since 1970.
   */
  release(error?: EtcdError, alone?: boolean): number | undefined;
}

interface Entry {
  readonly session: Session;
  readonly tls: TlsMaterial | undefined;
  usedAt: number;
  calls: number;
  circuit: Circuit;
}

const SWEEP_MS = 5_000;

const same = (a: TlsMaterial | undefined, b: TlsMaterial | undefined): boolean =>
  a === b || (a?.ca === b?.ca && a?.cert === b?.cert && a?.key === b?.key && a?.serverName === b?.serverName);

export class Pool {
  readonly #options: PoolOptions;
  readonly #clusters = new Map<string, Map<string, Entry>>();
  readonly #draining = new Set<Entry>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Throws EtcdFailure at once when the member is not worth asking now. */
  take(cluster: string, endpoint: string, tls: TlsMaterial | undefined): Taken {
    const begunAt = this.#options.monotonic();
    const entry = this.#entry(cluster, endpoint, tls, begunAt);
    this.#sweep(begunAt);
    const refused = refusal(entry.circuit, begunAt);
    if (refused) throw new EtcdFailure(refused);
    entry.calls++;
    let released = false;
    return {
      session: entry.session,
      release: (error, alone = false) => {
        if (!released) {
          released = true;
          this.#release(entry, begunAt, error, alone);
        }
        return entry.circuit.is === 'open' ? entry.circuit.since : undefined;
      },
    };
  }

  #release(entry: Entry, begunAt: number, error: EtcdError | undefined, alone: boolean): void {
    const { monotonic, now, backoff } = this.#options;
    const connecting = entry.session.state() === 'connecting';
    entry.calls--;
    entry.usedAt = monotonic();
    if (backoff) {
      const end = { begunAt, error, alone: alone || connecting };
      entry.circuit = afterCall(entry.circuit, end, { monotonic: entry.usedAt, now: now() }, backoff);
    }
    // A connection attempt into nothing lasts minutes, and all later calls would wait for it.
    const stuck = error?.kind === 'timeout' && connecting;
    if (entry.calls === 0 && (this.#draining.delete(entry) || stuck)) entry.session.close();
  }

  /** Something has changed at the cluster's members: each is asked again at once, whatever it did before. */
  reset(cluster: string): void {
    for (const entry of this.#clusters.get(cluster)?.values() ?? []) entry.circuit = CLOSED;
  }

  /** These are the members now: sessions to any other are closed. */
  retain(cluster: string, endpoints: readonly string[]): void {
    for (const [endpoint, entry] of this.#clusters.get(cluster) ?? [])
      if (!endpoints.includes(endpoint)) this.#drop(cluster, endpoint, entry);
  }

  forget(cluster: string): void {
    this.retain(cluster, []);
  }

  counts(): SessionCounts {
    const entries = [...this.#clusters.values()].flatMap((each) => [...each.values()]);
    const open = entries.filter((entry) => entry.session.state() === 'open').length;
    const unreachable = entries.filter((entry) => entry.circuit.is === 'open').length;
    return { clusters: this.#clusters.size, open, draining: this.#draining.size, unreachable };
  }

  close(): void {
    for (const cluster of this.#clusters.keys()) this.forget(cluster);
    for (const entry of this.#draining) entry.session.close();
    this.#draining.clear();
  }

  #entry(cluster: string, endpoint: string, tls: TlsMaterial | undefined, now: number): Entry {
    const entries = this.#clusters.get(cluster) ?? new Map<string, Entry>();
    const known = entries.get(endpoint);
    if (known && same(known.tls, tls)) {
      known.usedAt = now;
      return known;
    }
    const entry = { session: this.#options.open({ endpoint, tls }), tls, usedAt: now, calls: 0, circuit: CLOSED };
    if (known) this.#retire(known);
    entries.set(endpoint, entry);
    this.#clusters.set(cluster, entries);
    return entry;
  }

  #retire(entry: Entry): void {
    if (entry.calls === 0) entry.session.close();
    else this.#draining.add(entry);
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    const { idleMs, forgetMs, spare } = this.#options;
    const others: { readonly usedAt: number; readonly close: () => void }[] = [];
    for (const [cluster, entries] of this.#clusters) {
      const kept = keptOf(entries);
      for (const [endpoint, entry] of entries) {
        if (entry.calls > 0) continue;
        if (now - entry.usedAt > (entry === kept ? forgetMs : idleMs)) this.#drop(cluster, endpoint, entry);
        else if (entry !== kept && entry.session.state() !== 'closed') {
          // What is known of a member that fails is kept without its session.
          const close = () =>
            entry.circuit.is === 'open' ? entry.session.close() : this.#drop(cluster, endpoint, entry);
          others.push({ usedAt: entry.usedAt, close });
        }
      }
    }
    others.sort((one, other) => other.usedAt - one.usedAt);
    for (const { close } of others.slice(spare)) close();
  }

  #drop(cluster: string, endpoint: string, entry: Entry): void {
    entry.session.close();
    const entries = this.#clusters.get(cluster);
    entries?.delete(endpoint);
    if (entries?.size === 0) this.#clusters.delete(cluster);
  }
}

/** The session that the next question about the cluster can use: the last one that served. */
function keptOf(entries: ReadonlyMap<string, Entry>): Entry | undefined {
  let kept: Entry | undefined;
  for (const entry of entries.values())
    if (entry.circuit.is === 'closed' && (!kept || entry.usedAt >= kept.usedAt)) kept = entry;
  return kept;
}
