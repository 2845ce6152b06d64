/**
 * Judges Secrets without keeping the event loop from its other work: 200 certificates, or what a tenant has made to take long,
 * are read in pieces of a few milliseconds. See pki/pieces.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { attempt, type Kept } from '../pki/yielding.ts';

const PIECE_MS = 5;

export class YieldingEvaluation {
  readonly #kept: Kept = new Map();

  /** Starts the work again after each pause: it must not change anything. */
  async run<T>(work: () => T): Promise<T> {
    for (;;) {
      const started = performance.now();
      const done = attempt(this.#kept, () => performance.now() - started > PIECE_MS, work);
      if (done) return done.value;
      await turn();
    }
  }
}
