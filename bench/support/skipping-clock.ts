/** A clock that can be advanced: timers that were due meanwhile fire at once. */
import type { Clock } from '../../src/runtime/clock.ts';

interface Waiting {
  readonly at: number;
  readonly call: () => void;
  timer: NodeJS.Timeout;
}

export class SkippingClock implements Clock {
  #skipped = 0;
  readonly #waiting = new Set<Waiting>();

  now(): number {
    return Date.now() + this.#skipped;
  }
  monotonic(): number {
    return performance.now() + this.#skipped;
  }
  random(): number {
    return Math.random();
  }

  after(ms: number, call: () => void): () => void {
    const waiting: Waiting = { at: this.monotonic() + ms, call, timer: setTimeout(() => this.#fire(waiting), ms) };
    this.#waiting.add(waiting);
    return () => this.#cancel(waiting);
  }

  skip(ms: number): void {
    this.#skipped += ms;
    for (const waiting of [...this.#waiting].sort((a, b) => a.at - b.at)) {
      if (!this.#waiting.has(waiting)) continue; // an earlier timer has canceled it
      const left = waiting.at - this.monotonic();
      clearTimeout(waiting.timer);
      if (left <= 0) this.#fire(waiting);
      else waiting.timer = setTimeout(() => this.#fire(waiting), left);
    }
  }

  #fire(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    waiting.call();
  }

  #cancel(waiting: Waiting): void {
    clearTimeout(waiting.timer);
    this.#waiting.delete(waiting);
  }
}
