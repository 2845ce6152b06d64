/**
 * The work queue of a controller.
 *
 * Guarantees: a key is queued at most once and never reconciled twice at a time; an event that arrives while its key is being
 * reconciled leads to another reconcile; a failed key is retried with back-off, and an event ends the back-off.
 * Assumptions: `work` ends, because it has a deadline of its own; it calls `onObserve` before it reads the caches.
 * Namespaces take turns, so that thousands of objects of one tenant do not delay those of others.
 * Caveats: keys with low priority run after normal ones, one in nine. A Retry-After of the API server holds its key, also against events.
 */
import { type BackoffOptions, backoffMs } from '../lib/backoff.ts';
import { RoundRobin } from '../lib/round-robin.ts';
import type { Clock } from './clock.ts';

/** Normal: a watch event. Low: a requeue after some time, or the first reconcile of a new cluster. Normal keys run first. */
export type Priority = 'normal' | 'low';

export interface QueueOptions {
  readonly clock: Clock;
  /** Maximum of concurrent reconciles: more of them would delay each other and block the event loop. */
  readonly concurrency: number;
  /** A reconcile that runs longer waits for an unreachable server: it no longer counts towards `concurrency`. */
  readonly slowAfterMs: number;
  /** Maximum of concurrent reconciles, slow ones included. */
  readonly maxRunning: number;
  readonly backoff: BackoffOptions;
  /**
   * Reconciles one key. Resolves to the milliseconds after which the key is requeued, or rejects to be retried with back-off.
   * `onObserve` is called before the caches are read: events that arrived earlier need no further reconcile.
   */
  readonly work: (key: string, onObserve: () => void) => Promise<number | undefined>;
  /** The delay that an error requests (Retry-After); the back-off applies when it is longer. */
  readonly retryAfterMs?: (error: unknown) => number | undefined;
  /** Called when a reconcile starts, with the time that its key has waited in the queue. */
  readonly onStart?: (waitedMs: number) => void;
}

interface Timer {
  readonly at: number;
  readonly cancel: () => void;
}

/** One low-priority key runs after this many normal ones: under constant change it would starve. */
const NORMAL_PER_LOW = 8;
/**
 * A namespace may run this many reconciles per free slot: three quarters of all slots if it is alone, less when several are busy.
 * The other slots stay free for other tenants, however many of its reconciles wait for servers that do not respond.
 */
const PER_FREE_SLOT = 3;

const namespaceOf = (key: string): string => key.slice(0, Math.max(0, key.indexOf('/')));

export class Queue {
  readonly #options: QueueOptions;
  /** Per key, since when it has been waiting in the queue. */
  readonly #normal = new RoundRobin<number>(namespaceOf);
  readonly #low = new RoundRobin<number>(namespaceOf);
  readonly #running = new Map<string, number>();
  /** Per namespace, how many of its reconciles are running. */
  readonly #runningIn = new Map<string, number>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, number>();
  /** Until when a key is not reconciled even if events arrive: the API server has sent a Retry-After. */
  readonly #heldUntil = new Map<string, number>();
  /** Cancels the timer that fires when the oldest reconcile becomes slow. */
  #roomTimer: (() => void) | undefined;
  #normalInARow = 0;
  #stopped = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get depth(): number {
    return this.#normal.size + this.#low.size;
  }
  /** How long the oldest of the running reconciles has been running. */
  get oldestReconcileMs(): number {
    const now = this.#options.clock.monotonic();
    let oldest = 0;
    for (const since of this.#running.values()) oldest = Math.max(oldest, now - since);
    return oldest;
  }

  /** As soon as possible. Events that arrive while the key is being reconciled lead to one more reconcile. */
  add(key: string, priority: Priority = 'normal'): void {
    if (this.#stopped) return;
    const heldMs = (this.#heldUntil.get(key) ?? 0) - this.#options.clock.monotonic();
    if (heldMs > 0) return this.addAfter(key, heldMs, priority);
    this.#heldUntil.delete(key);
    this.#cancel(key);
    const since = this.#normal.get(key) ?? this.#low.get(key) ?? this.#options.clock.monotonic();
    if (priority === 'normal') {
      this.#low.delete(key);
      this.#normal.set(key, since);
    } else if (this.#normal.get(key) === undefined) this.#low.set(key, since);
    this.#pump();
  }

  /** After a delay, unless an event arrives before. The earlier of two delays wins. */
  addAfter(key: string, ms: number, priority: Priority = 'low'): void {
    if (this.#stopped || (this.#normal.get(key) ?? this.#low.get(key)) !== undefined) return;
    const at = this.#options.clock.monotonic() + ms;
    const old = this.#timers.get(key);
    if (old && old.at <= at) return;
    this.#cancel(key);
    const due = (): void => {
      this.#timers.delete(key); // `add` may hold the key again, and a fired timer would be mistaken for a pending one
      this.add(key, priority);
    };
    this.#timers.set(key, { at, cancel: this.#options.clock.after(ms, due) });
  }

  /** Starts no more reconciles; resolves when the running ones have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#roomTimer?.();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#normal.clear();
    this.#low.clear();
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #pump(): void {
    while (!this.#stopped && this.depth > 0 && this.#hasRoom()) {
      const next = this.#next();
      if (next === undefined) return;
      const now = this.#options.clock.monotonic();
      this.#options.onStart?.(now - next.since);
      this.#running.set(next.key, now);
      this.#countRunning(next.key, 1);
      void this.#run(next.key);
    }
  }

  #hasRoom(): boolean {
    const { clock, concurrency, slowAfterMs, maxRunning } = this.#options;
    if (this.#running.size < concurrency) return true;
    if (this.#running.size >= maxRunning) return false;
    const now = clock.monotonic();
    const fast = [...this.#running.values()].filter((since) => now - since < slowAfterMs);
    const [oldest] = fast;
    if (oldest === undefined || fast.length < concurrency) return true;
    this.#roomTimer ??= clock.after(oldest + slowAfterMs - now, () => {
      this.#roomTimer = undefined;
      this.#pump();
    });
    return false;
  }

  #next(): { readonly key: string; readonly since: number } | undefined {
    const lowFirst = this.#normalInARow >= NORMAL_PER_LOW;
    const taken = lowFirst
      ? (this.#take(this.#low) ?? this.#take(this.#normal))
      : (this.#take(this.#normal) ?? this.#take(this.#low));
    if (taken) this.#normalInARow = taken.from === this.#normal && !lowFirst ? this.#normalInARow + 1 : 0;
    return taken;
  }

  #take(from: RoundRobin<number>) {
    const free = this.#options.maxRunning - this.#running.size;
    const taken = from.take(
      (key) => !this.#running.has(key),
      (namespace) => (this.#runningIn.get(namespace) ?? 0) < PER_FREE_SLOT * free,
    );
    return taken && { key: taken.key, since: taken.value, from };
  }

  #countRunning(key: string, by: 1 | -1): void {
    const count = (this.#runningIn.get(namespaceOf(key)) ?? 0) + by;
    if (count === 0) this.#runningIn.delete(namespaceOf(key));
    else this.#runningIn.set(namespaceOf(key), count);
  }

  async #run(key: string): Promise<void> {
    try {
      const after = await this.#options.work(key, () => this.#clearPending(key));
      this.#failures.delete(key);
      if (after !== undefined) this.addAfter(key, after, after === 0 ? 'normal' : 'low');
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const { clock, backoff, retryAfterMs } = this.#options;
      const requested = retryAfterMs?.(error) ?? 0;
      if (requested > 0) this.#hold(key, requested);
      this.addAfter(key, Math.max(requested, backoffMs(failures, clock.random(), backoff)));
    } finally {
      this.#running.delete(key);
      this.#countRunning(key, -1);
      this.#pump();
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  #clearPending(key: string): void {
    this.#normal.delete(key);
    this.#low.delete(key);
  }

  /** Events that arrived during the reconcile are held, too. */
  #hold(key: string, ms: number): void {
    this.#heldUntil.set(key, this.#options.clock.monotonic() + ms);
    this.#clearPending(key);
  }

  #cancel(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
  }
}
