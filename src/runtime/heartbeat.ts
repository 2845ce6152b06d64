/**
 * Knows when the API server was last heard of, and asks when it has been quiet. An idle operator makes no requests, and a
 * connection that died without a word would be noticed only when it is needed: the question makes it fail, and then every
 * watch on it is resumed on a new one.
 */
import { type Clock, sleep } from './clock.ts';

export const QUIET_MS = 30_000;
const LOOK_MS = 5_000;

export class ApiServerHeartbeat {
  readonly #clock: Clock;
  #heardAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
  }

  get silentMs(): number {
    return this.#clock.monotonic() - this.#heardAt;
  }

  /** An answer, whichever it is, or an event of a watch. */
  heard(): void {
    this.#heardAt = this.#clock.monotonic();
  }

  /** Until the signal. `ask` reaches the server, or rejects. */
  async keep(ask: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#clock, LOOK_MS, signal);
      if (!signal.aborted && this.silentMs >= QUIET_MS) await ask().catch(() => undefined);
    }
  }
}
