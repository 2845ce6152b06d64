/**
 * Sessions by cluster and member. Idle ones are kept up to a limit, the most recently used first. They are closed after
 * an idle time, when their member is removed, and, once their calls have ended, when the certificates change. With
 * backoff, a member that fails is called more and more rarely.
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
  /** A session is closed after this time without a call, and the state of its member removed. */
  readonly idleMs: number;
  /** At most this number of idle sessions, in all clusters together. */
  readonly waiting: number;
  /** Without it every call is made, however often the member has failed. */
  readonly backoff?: BackoffOptions | undefined;
}

export interface SessionCounts {
  readonly clusters: number;
  /** Connected now. */
  readonly open: number;
  /** Replaced, with calls that have not ended yet. */
  readonly draining: number;
  /** Members that are called with pauses only. */
  readonly unreachable: number;
}

export interface Taken {
  readonly session: Session;
  /**
   * The call has ended. `alone`: the member needs no peer for this response. Returns since when no call to it has
   * succeeded, in milliseconds since 1970.
   */
  release(error?: EtcdError, alone?: boolean): number | undefined;
}

interface Entry {
  readonly cluster: string;
  readonly endpoint: string;
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
  /** Sessions without a call; the most recently used one is the last. */
  readonly #waiting = new Set<Entry>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Throws EtcdFailure at once while the member's circuit is open. */
  take(cluster: string, endpoint: string, tls: TlsMaterial | undefined): Taken {
    const startedAt = this.#options.monotonic();
    const entry = this.#entry(cluster, endpoint, tls, startedAt);
    this.#sweep(startedAt);
    const refused = refusal(entry.circuit, startedAt);
    if (refused) throw new EtcdFailure(refused);
    entry.calls++;
    this.#waiting.delete(entry);
    let released = false;
    return {
      session: entry.session,
      release: (error, alone = false) => {
        if (!released) {
          released = true;
          this.#release(entry, startedAt, error, alone);
        }
        return entry.circuit.is === 'open' ? entry.circuit.since : undefined;
      },
    };
  }

  #release(entry: Entry, startedAt: number, error: EtcdError | undefined, alone: boolean): void {
    const { monotonic, now, backoff } = this.#options;
    const connecting = entry.session.state() === 'connecting';
    entry.calls--;
    entry.usedAt = monotonic();
    if (backoff) {
      const end = { startedAt, error, alone: alone || connecting };
      entry.circuit = afterCall(entry.circuit, end, { monotonic: entry.usedAt, now: now() }, backoff);
    }
    // A connection attempt to an address without a host lasts minutes, and all later calls would wait for it.
    const stuck = error?.kind === 'timeout' && connecting;
    if (entry.calls > 0) return;
    if (this.#draining.delete(entry) || stuck) entry.session.close();
    else if (this.#isHeld(entry)) this.#wait(entry);
  }

  #isHeld(entry: Entry): boolean {
    return this.#clusters.get(entry.cluster)?.get(entry.endpoint) === entry;
  }

  #wait(entry: Entry): void {
    this.#waiting.add(entry);
    const [oldest] = this.#waiting;
    if (!oldest || this.#waiting.size <= this.#options.waiting) return;
    // The circuit of a member that fails is kept without its session.
    if (oldest.circuit.is === 'closed') return this.#drop(oldest);
    this.#waiting.delete(oldest);
    oldest.session.close();
  }

  /** A Pod of the cluster has changed: each member is called again at once, whatever its circuit. */
  reset(cluster: string): void {
    for (const entry of this.#clusters.get(cluster)?.values() ?? []) entry.circuit = CLOSED;
  }

  /** The current members: sessions to any other are closed. */
  retain(cluster: string, endpoints: readonly string[]): void {
    for (const [endpoint, entry] of this.#clusters.get(cluster) ?? [])
      if (!endpoints.includes(endpoint)) this.#drop(entry);
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
    const session = this.#options.open({ endpoint, tls });
    const entry = { cluster, endpoint, session, tls, usedAt: now, calls: 0, circuit: CLOSED };
    if (known) this.#retire(known);
    entries.set(endpoint, entry);
    this.#clusters.set(cluster, entries);
    return entry;
  }

  #retire(entry: Entry): void {
    this.#waiting.delete(entry);
    if (entry.calls === 0) entry.session.close();
    else this.#draining.add(entry);
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const entries of this.#clusters.values())
      for (const entry of entries.values())
        if (entry.calls === 0 && now - entry.usedAt > this.#options.idleMs) this.#drop(entry);
  }

  #drop(entry: Entry): void {
    entry.session.close();
    this.#waiting.delete(entry);
    const entries = this.#clusters.get(entry.cluster);
    entries?.delete(entry.endpoint);
    if (entries?.size === 0) this.#clusters.delete(entry.cluster);
  }
}
