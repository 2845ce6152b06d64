/**
 * How long something has lasted, by the monotonic clock of this process. Timestamps in objects come from other clocks, and the wall
 * clock of this machine may jump: neither may end a grace period early, because data is deleted when it ends.
 */
import type { Clock } from './clock.ts';

/** For how long this process has observed the present state of each key. */
export class ObservedStates {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #states = new Map<string, { readonly state: string; readonly since: number }>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** `undefined` is the normal state, of which nothing is kept. */
  forMs(key: string, state: string | undefined): number {
    const known = this.#states.get(key);
    const now = this.#clock.monotonic();
    if (known?.state === state) return now - (known?.since ?? now);
    if (state === undefined) this.#states.delete(key);
    else this.#states.set(key, { state, since: now });
    return 0;
  }
}

/** Clocks are corrected by less than this all the time. */
const MIN_JUMP_MS = 1_000;

/** Jumps of the wall clock. A machine that was suspended jumps too. */
export class ClockJumps {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #jumps: { readonly at: number; readonly ms: number }[] = [];
  #offset: number;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
    this.#offset = clock.now() - clock.monotonic();
  }

  /** How far the wall clock has jumped ahead in this time: a deadline that was running is so much later. */
  aheadMs(withinMs: number): number {
    const at = this.#clock.monotonic();
    const offset = this.#clock.now() - at;
    const ms = offset - this.#offset;
    if (Math.abs(ms) > MIN_JUMP_MS) this.#jumps.push({ at, ms });
    this.#offset = offset;
    const recent = this.#jumps.filter((jump) => at - jump.at <= withinMs);
    return Math.max(
      0,
      recent.reduce((sum, jump) => sum + jump.ms, 0),
    );
  }
}
