/** Waits for work that the operator does. Ctrl-C ends only the waiting. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from './context.ts';
import { explain } from './gather/access-error.ts';

export interface Progress {
  /** Printed when it differs from the last one. */
  readonly line: string;
  /** Absent while the work goes on. */
  readonly ended?: 'good' | 'bad';
}

const EVERY_MS = 1_000;
/** As a shell reports a command that was ended by Ctrl-C. */
export const INTERRUPTED = 130;

/** Resolves to the exit code. `later`: how to see what becomes of it. */
export async function follow(
  { note, signal }: Pick<Context, 'note' | 'signal'>,
  look: () => Promise<Progress>,
  later: string,
  everyMs = EVERY_MS,
): Promise<number> {
  let last = '';
  while (!signal.aborted) {
    // An API server that restarts does not end the work, so it does not end the waiting.
    const seen = await look().catch((error: unknown): Progress => ({ line: explain(error) }));
    if (signal.aborted) break;
    if (seen.line !== last) note(seen.line);
    last = seen.line;
    if (seen.ended) return seen.ended === 'good' ? 0 : 1;
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
  note(`\nthis command no longer waits, and the operator goes on: ${later}`);
  return INTERRUPTED;
}
