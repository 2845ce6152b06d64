/**
 * Records when the API server last responded, and sends a request when nothing was received for a while. An idle operator
 * makes no requests, so a connection that was dropped without a FIN would go unnoticed: the request makes it fail, and every
 * watch on it is resumed on a new connection.
 */
import { type Clock, sleep } from './clock.ts';

export const QUIET_MS = 30_000;
const CHECK_MS = 5_000;

export class ApiServerHeartbeat {
  readonly #clock: Clock;
  #respondedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#respondedAt = clock.monotonic();
  }

  get sinceResponseMs(): number {
    return this.#clock.monotonic() - this.#respondedAt;
  }

  /** A response, whichever its status, or a watch event was received. */
  responded(): void {
    this.#respondedAt = this.#clock.monotonic();
  }

  /** Until the signal. `request` reaches the API server, or rejects. */
  async keep(request: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#clock, CHECK_MS, signal);
      if (!signal.aborted && this.sinceResponseMs >= QUIET_MS) await request().catch(() => undefined);
    }
  }
}
