/** Keys waiting for their pass: each at most once, never two passes of one key at a time, many keys at once. */
import { type BackoffOptions, backoffMs } from '../lib/backoff.ts';
import type { Clock } from './clock.ts';

export interface QueueOptions {
  readonly clock: Clock;
  readonly concurrency: number;
  readonly backoff: BackoffOptions;
  /** One pass. Resolves to when to look again, if nothing happens before; rejects to be tried again later. */
  readonly work: (key: string) => Promise<number | undefined>;
}

interface Timer {
  readonly at: number;
  readonly cancel: () => void;
}

export class Queue {
  readonly #options: QueueOptions;
  readonly #ready = new Set<string>();
  readonly #running = new Set<string>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, number>();
  #stopped = false;
  #whenIdle: (() => void)[] = [];

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  get depth(): number {
    return this.#ready.size;
  }
  get running(): number {
    return this.#running.size;
  }

  /** As soon as possible. What arrives during a pass of the same key leads to one more pass after it. */
  add(key: string): void {
    if (this.#stopped) return;
    this.#cancel(key);
    this.#ready.add(key);
    this.#pump();
  }

  /** Later, unless something happens before. The earlier of two times counts. */
  addAfter(key: string, ms: number): void {
    if (this.#stopped || this.#ready.has(key)) return;
    const at = this.#options.clock.monotonic() + ms;
    const old = this.#timers.get(key);
    if (old && old.at <= at) return;
    this.#cancel(key);
    this.#timers.set(key, { at, cancel: this.#options.clock.after(ms, () => this.add(key)) });
  }

  /** Hands out nothing more; resolves when the running passes are done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#ready.clear();
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
  }

  #pump(): void {
    for (const key of this.#ready) {
      if (this.#stopped || this.#running.size >= this.#options.concurrency) return;
      if (this.#running.has(key)) continue;
      this.#ready.delete(key);
      this.#running.add(key);
      void this.#pass(key);
    }
  }

  async #pass(key: string): Promise<void> {
    try {
      const after = await this.#options.work(key);
      this.#failures.delete(key);
      if (after !== undefined) this.addAfter(key, after);
    } catch {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      this.addAfter(key, backoffMs(failures, this.#options.clock.random(), this.#options.backoff));
    } finally {
      this.#running.delete(key);
      this.#pump();
      if (this.#running.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    }
  }

  #cancel(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
  }
}
