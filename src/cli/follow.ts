/** Waits for work that the operator does. Ctrl-C ends only the waiting. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../kube/errors.ts';
import { parseDuration } from '../lib/duration.ts';
import type { Progress } from './assess/progress.ts';
import { type Context, UserError } from './context.ts';
import { explain } from './gather/access-error.ts';

export interface WaitFlags {
  /** False with --no-wait. */
  readonly wait?: boolean;
  readonly timeout?: string;
}

const EVERY_MS = 1_000;
/** As a shell reports a command that was ended by Ctrl-C. */
export const INTERRUPTED = 130;

/** Asked before anything is changed: a wrong flag must change nothing. */
export function timeoutMs({ timeout }: WaitFlags): number {
  if (timeout === undefined) return Number.POSITIVE_INFINITY;
  const ms = parseDuration(timeout);
  if (!ms) throw new UserError(`--timeout must be a duration such as 10m, not ${timeout}`);
  return ms;
}

export interface Waiting {
  /** How to see what becomes of it. */
  readonly later: string;
  readonly timeoutMs?: number;
  readonly everyMs?: number;
}

/** Resolves to the exit code. */
export async function follow(
  { note, signal }: Pick<Context, 'note' | 'signal'>,
  look: () => Promise<Progress>,
  { later, timeoutMs: limitMs = Number.POSITIVE_INFINITY, everyMs = EVERY_MS }: Waiting,
): Promise<number> {
  const started = performance.now();
  let last = '';
  while (!signal.aborted) {
    const seen = await look().catch(passing);
    if (signal.aborted) break;
    if (seen.line !== last) note(seen.line);
    last = seen.line;
    if (seen.ended) return seen.ended === 'good' ? 0 : 1;
    if (performance.now() - started >= limitMs) {
      note(`\nthe time of --timeout is over, and the operator goes on: ${later}`);
      return 1;
    }
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
  }
  note(`\nthis command no longer waits, and the operator goes on: ${later}`);
  return INTERRUPTED;
}

/** An API server that restarts does not end the work, so it does not end the waiting. Without the object, or the permission, nothing more will be seen. */
function passing(error: unknown): Progress {
  if (error instanceof UserError || (error instanceof ApiError && error.code === 403)) throw error;
  return { line: explain(error) };
}
