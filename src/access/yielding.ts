/**
 * Evaluates Secrets without blocking the event loop: 200 certificates, or a tenant's hostile Secret, are parsed in slices of a few
 * milliseconds. See pki/yielding.ts.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { EVALUATION_SLICE_MS } from '../domain/timing.ts';
import { attempt, type Kept } from '../pki/yielding.ts';

export class YieldingEvaluation {
  readonly #kept: Kept = new Map();

  /** Runs the work again from its start after each pause: it must have no side effects. */
  async run<T>(work: () => T): Promise<T> {
    for (;;) {
      const started = performance.now();
      const done = attempt(this.#kept, () => performance.now() - started > EVALUATION_SLICE_MS, work);
      if (done) return done.value;
      await turn();
    }
  }
}
