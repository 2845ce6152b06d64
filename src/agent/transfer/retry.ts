/** Calls that survive a server's restart: the same retry policy for every service, instead of one per library. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AgentFailure } from '../failure.ts';
import { errorInfo, isPassing } from './error-info.ts';

/** A server that was killed is mostly back within half a minute; after this, the failure is reported. */
const GIVE_UP_MS = 60_000;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 5_000;
export const SHORT_CALL_MS = 30_000;
/** 8 MiB in five minutes: slower is broken. */
export const LONG_CALL_MS = 300_000;

export const NEVER = new AbortController().signal;

export function stopped(signal: AbortSignal): AgentFailure {
  return signal.reason instanceof AgentFailure
    ? signal.reason
    : new AgentFailure(
        'TimedOut',
        'the task was stopped before it was done: its deadline was exceeded, or its Pod was terminated',
      );
}

/** Retries transient failures. The attempt's own signal also ends it after `timeoutMs`. */
export async function withRetry<T>(
  { signal = NEVER, timeoutMs = SHORT_CALL_MS }: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  let giveUp: number | undefined;
  for (let delay = FIRST_DELAY_MS; ; delay = Math.min(2 * delay, MAX_DELAY_MS)) {
    try {
      return await within(signal, timeoutMs, attempt);
    } catch (error) {
      if (signal.aborted) throw stopped(signal);
      giveUp ??= performance.now() + GIVE_UP_MS;
      if (!isPassing(errorInfo(error)) || performance.now() > giveUp) throw error;
    }
    await sleep(delay, undefined, { signal }).catch(() => undefined);
  }
}

/** Ends the attempt when the signal aborts or the time is up; the latter is reported like any unreachable server. */
async function within<T>(
  signal: AbortSignal,
  timeoutMs: number,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (signal.aborted) throw stopped(signal);
  // Not AbortSignal.timeout: with a listener that a library leaves behind, it would keep the bytes of a part until the time is up.
  const end = new AbortController();
  const stop = (): void => end.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end.abort();
  }, timeoutMs);
  try {
    // Raced: a library that ignores the signal would otherwise hang the task for ever.
    return await Promise.race([attempt(end.signal), aborted(end.signal)]);
  } catch (error) {
    throw late ? Object.assign(new Error('no response in time', { cause: error }), { code: 'ETIMEDOUT' }) : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
