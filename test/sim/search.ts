/** Searches for a world in which an invariant is violated. The same seed runs the same worlds. */
import fc from 'fast-check';
import { type Outcome, run } from './run.ts';
import { SCOPE } from './scope.ts';
import { type Scope, type Script, scripts } from './script.ts';

const AT_ONCE = 100;

export interface Search {
  readonly seed: number;
  /** Absent: everything that this build is meant to survive. */
  readonly scope?: Scope;
  /** Stops after this many steps in all worlds together, or after up to twice as many while `isEnough` is false. */
  readonly steps: number;
  readonly isEnough?: () => boolean;
  /** Whether the first failing script is shrunk. */
  readonly shrink: boolean;
  readonly seen?: (outcome: Outcome) => void;
}

export interface Found {
  readonly script: Script;
  readonly seed: number;
}

export async function search({
  seed: first,
  scope = SCOPE,
  steps,
  isEnough,
  shrink,
  seen,
}: Search): Promise<Found | undefined> {
  let done = 0;
  const goesOn = (): boolean => done < steps || (done < 2 * steps && isEnough?.() === false);
  for (let seed = first; goesOn(); seed++) {
    const property = fc.asyncProperty(scripts(scope), async (script) => {
      if (!goesOn() && !shrink) return true;
      const outcome = await run(script);
      done += outcome.steps;
      seen?.(outcome);
      return outcome.broken === undefined;
    });
    const { counterexample } = await fc.check(property, { seed, numRuns: AT_ONCE, endOnFailure: !shrink });
    if (counterexample) return { script: counterexample[0], seed };
  }
  return undefined;
}
