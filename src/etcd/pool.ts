/**
 * Sessions by cluster and member. One of each cluster is kept for the next pass; the others are closed when nobody has
 * used them for a while, when their member goes, and, once their calls have ended, when the certificates change.
 */
import type { OpenSession, Session, TlsMaterial } from './transport.ts';

export interface PoolOptions {
  readonly monotonic: () => number;
  readonly open: OpenSession;
  /** A session beside the kept one is closed after this time without a call. */
  readonly idleMs: number;
  /** Nobody asks about the cluster any more: its last session is closed too. */
  readonly forgetMs: number;
}

export interface SessionCounts {
  readonly clusters: number;
  /** Connected now. */
  readonly open: number;
  /** Replaced, with calls that have not ended yet. */
  readonly draining: number;
}

export interface Taken {
  readonly session: Session;
  /** The call has ended; `stuck` when it ended without having been sent. */
  release(stuck?: boolean): void;
}

interface Entry {
  readonly session: Session;
  readonly tls: TlsMaterial | undefined;
  usedAt: number;
  calls: number;
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

  take(cluster: string, endpoint: string, tls: TlsMaterial | undefined): Taken {
    const now = this.#options.monotonic();
    const entry = this.#entry(cluster, endpoint, tls, now);
    this.#sweep(now);
    entry.calls++;
    let released = false;
    return {
      session: entry.session,
      release: (stuck = false) => {
        if (released) return;
        released = true;
        entry.calls--;
        entry.usedAt = this.#options.monotonic();
        // A connection attempt into nothing lasts minutes, and all later calls would wait for it.
        if (stuck && entry.calls === 0 && entry.session.state() === 'connecting') entry.session.close();
        if (entry.calls === 0 && this.#draining.delete(entry)) entry.session.close();
      },
    };
  }

  /** These are the members now: sessions to any other are closed. */
  retain(cluster: string, endpoints: readonly string[]): void {
    const entries = this.#clusters.get(cluster);
    for (const [endpoint, entry] of entries ?? [])
      if (!endpoints.includes(endpoint)) {
        entry.session.close();
        entries?.delete(endpoint);
      }
    if (entries?.size === 0) this.#clusters.delete(cluster);
  }

  forget(cluster: string): void {
    this.retain(cluster, []);
  }

  counts(): SessionCounts {
    const entries = [...this.#clusters.values()].flatMap((each) => [...each.values()]);
    const open = entries.filter((entry) => entry.session.state() === 'open').length;
    return { clusters: this.#clusters.size, open, draining: this.#draining.size };
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
    const entry = { session: this.#options.open({ endpoint, tls }), tls, usedAt: now, calls: 0 };
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
    for (const [cluster, entries] of this.#clusters) {
      const last = Math.max(...[...entries.values()].map((entry) => entry.usedAt));
      for (const [endpoint, entry] of entries) {
        const limit = entry.usedAt === last ? this.#options.forgetMs : this.#options.idleMs;
        if (entry.calls > 0 || now - entry.usedAt <= limit) continue;
        entry.session.close();
        entries.delete(endpoint);
      }
      if (entries.size === 0) this.#clusters.delete(cluster);
    }
  }
}
