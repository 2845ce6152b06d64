/**
 * Which process may write. A running holder renews all the time; one that is frozen or dead does not. After ten seconds
 * without a renewal it may not write, after fifteen another one may take over: the durations of `src/kube/lease.ts`.
 */
import { LEASE_SECONDS, RENEW_DEADLINE_MS } from '../../../src/kube/lease.ts';
import type { Timeline } from './timeline.ts';

interface Holder {
  readonly dead: boolean;
}

export class LeaseModel {
  readonly #timeline: Timeline;
  #holder: Holder | undefined;
  /** When the holder could last renew; undefined while it can. */
  #silentSince: number | undefined;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Whether the process may send a write now. */
  mayWrite(process: Holder): boolean {
    return this.#holder === process && this.#silentMs() < RENEW_DEADLINE_MS;
  }

  take(process: Holder): boolean {
    if (this.#holder === process) return true;
    if (this.#holder && this.#silentMs() < LEASE_SECONDS * 1_000) return false;
    this.#holder = process;
    this.#silentSince = undefined;
    return true;
  }

  /** The process stops to renew. */
  stopRenewing(process: Holder): void {
    if (this.#holder === process) this.#silentSince ??= this.#timeline.now;
  }
  /** The process resumes. False when another process has taken the Lease meanwhile. */
  speaks(process: Holder): boolean {
    if (!this.mayWrite(process)) return false;
    this.#silentSince = undefined;
    return true;
  }

  #silentMs(): number {
    return this.#silentSince === undefined ? 0 : this.#timeline.now - this.#silentSince;
  }
}
