/** Keys waiting for their pass: each at most once, never two passes of one key at a time, many keys at once. */
import { type BackoffOptions, backoffMs } from '../lib/backoff.ts';
import type { Clock } from './clock.ts';

/** Why a key is to be looked at: something changed, or time has passed. Changes go first. */
export type Priority = 'change' | 'resync';

export interface QueueOptions {
  readonly clock: Clock;
  /** So many passes at a time: more of them would keep each other waiting, and the whole process busy in one go. */
  readonly concurrency: number;
  /** A pass that takes longer waits for somebody who does not answer, and makes room for another one. */
  readonly slowAfterMs: number;
  /** All passes at a time, those included that have made room. */
  readonly maxRunning: number;
  readonly backoff: BackoffOptions;
  /**
   * One pass. Resolves to when to look again, if nothing happens before; rejects to be tried again later. `looking` says
   * that it begins to look: what has arrived before that is seen by this pass, and needs no other one.
   */
  readonly work: (key: string, looking: () => void) => Promise<number | undefined>;
  /** How long a failure itself asks to wait; the back-off counts when it is longer. */
  readonly retryAfterMs?: (error: unknown) => number | undefined;
  /** A pass begins for a key that has waited this long for its turn. */
  readonly onStart?: (waitedMs: number) => void;
}

interface Timer {
  readonly at: number;
  readonly cancel: () => void;
}

/** After so many changes in a row, one resync has its turn: under constant change it would never come. */
const CHANGES_PER_RESYNC = 8;

export class Queue {
  readonly #options: QueueOptions;
  /** Since when each key is ready. */
  readonly #changed = new Map<string, number>();
  readonly #due = new Map<string, number>();
  readonly #running = new Map<string, number>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, number>();
  /** Until when a key must be left alone, whatever happens to it: the server has asked for it. */
  readonly #held = new Map<string, number>();
  /** Cancels the look at the passes that may have made room. */
  #roomTimer: (() => void) | undefined;
  #changesInARow = 0;
  #stopped = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get depth(): number {
    return this.#changed.size + this.#due.size;
  }
  /** How long the longest of the running passes has been at it. */
  get oldestReconcileMs(): number {
    const now = this.#options.clock.monotonic();
    let oldest = 0;
    for (const since of this.#running.values()) oldest = Math.max(oldest, now - since);
    return oldest;
  }

  /** As soon as possible. What arrives during a pass of the same key leads to one more pass after it. */
  add(key: string, reason: Priority = 'change'): void {
    if (this.#stopped) return;
    const heldMs = (this.#held.get(key) ?? 0) - this.#options.clock.monotonic();
    if (heldMs > 0) return this.addAfter(key, heldMs, reason);
    this.#held.delete(key);
    this.#cancel(key);
    const since = this.#changed.get(key) ?? this.#due.get(key) ?? this.#options.clock.monotonic();
    if (reason === 'change') {
      this.#due.delete(key);
      this.#changed.set(key, since);
    } else if (!this.#changed.has(key)) this.#due.set(key, since);
    this.#pump();
  }

  /** Later, unless something happens before. The earlier of two times counts. */
  addAfter(key: string, ms: number, reason: Priority = 'resync'): void {
    if (this.#stopped || this.#changed.has(key) || this.#due.has(key)) return;
    const at = this.#options.clock.monotonic() + ms;
    const old = this.#timers.get(key);
    if (old && old.at <= at) return;
    this.#cancel(key);
    const due = (): void => {
      this.#timers.delete(key); // a timer that has fired must not pass for one that is still to come
      this.add(key, reason);
    };
    this.#timers.set(key, { at, cancel: this.#options.clock.after(ms, due) });
  }

  /** Hands out nothing more; resolves when the running passes are done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#roomTimer?.();
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#changed.clear();
    this.#due.clear();
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #pump(): void {
    while (!this.#stopped && this.depth > 0 && this.#hasRoom()) {
      const next = this.#next();
      if (next === undefined) return;
      const now = this.#options.clock.monotonic();
      this.#options.onStart?.(now - next.since);
      this.#running.set(next.key, now);
      void this.#pass(next.key);
    }
  }

  #hasRoom(): boolean {
    const { clock, concurrency, slowAfterMs: patienceMs, maxRunning: most } = this.#options;
    if (this.#running.size < concurrency) return true;
    if (this.#running.size >= most) return false;
    const now = clock.monotonic();
    const brisk = [...this.#running.values()].filter((since) => now - since < patienceMs);
    const [oldest] = brisk;
    if (oldest === undefined || brisk.length < concurrency) return true;
    this.#roomTimer ??= clock.after(oldest + patienceMs - now, () => {
      this.#roomTimer = undefined;
      this.#pump();
    });
    return false;
  }

  #next(): { readonly key: string; readonly since: number } | undefined {
    const resyncFirst = this.#changesInARow >= CHANGES_PER_RESYNC;
    const taken = resyncFirst
      ? (this.#take(this.#due) ?? this.#take(this.#changed))
      : (this.#take(this.#changed) ?? this.#take(this.#due));
    if (taken) this.#changesInARow = taken.from === this.#changed && !resyncFirst ? this.#changesInARow + 1 : 0;
    return taken;
  }

  #take(from: Map<string, number>) {
    for (const [key, since] of from) {
      if (this.#running.has(key)) continue;
      from.delete(key);
      return { key, since, from };
    }
    return undefined;
  }

  async #pass(key: string): Promise<void> {
    try {
      const after = await this.#options.work(key, () => this.#seen(key));
      this.#failures.delete(key);
      if (after !== undefined) this.addAfter(key, after, after === 0 ? 'change' : 'resync');
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      const { clock, backoff, retryAfterMs: pauseAsked } = this.#options;
      const asked = pauseAsked?.(error) ?? 0;
      if (asked > 0) this.#hold(key, asked);
      this.addAfter(key, Math.max(asked, backoffMs(failures, clock.random(), backoff)));
    } finally {
      this.#running.delete(key);
      this.#pump();
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  #seen(key: string): void {
    this.#changed.delete(key);
    this.#due.delete(key);
  }

  /** What arrived during the pass waits, too. */
  #hold(key: string, ms: number): void {
    this.#held.set(key, this.#options.clock.monotonic() + ms);
    this.#seen(key);
  }

  #cancel(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
  }
}
