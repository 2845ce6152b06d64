/** The clock and the random source as arguments: `bin` passes the real ones, tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** In [0, 1). */
  random(): number;
  /** Calls back after the time; returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

/** Node treats a longer delay as 1 ms. A callback that fires too early checks the time and sets its timer again. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  after: (ms, call) => {
    const timer = setTimeout(call, Math.min(ms, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after the time or at the signal, whichever is first; never rejects. */
export const sleep = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal.addEventListener('abort', done);
  });

/** A signal that aborts with the given one or after the time. `cancel` removes the timer and the listener. */
export function deadline(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
): { readonly signal: AbortSignal; readonly cancel: () => void } {
  const limit = new AbortController();
  const follow = (): void => limit.abort(signal.reason);
  if (signal.aborted) follow();
  signal.addEventListener('abort', follow, { once: true });
  const stopTimer = clock.after(ms, () => limit.abort(new Error(`not done within ${ms} ms`)));
  const cancel = (): void => {
    stopTimer();
    signal.removeEventListener('abort', follow);
  };
  return { signal: limit.signal, cancel };
}
