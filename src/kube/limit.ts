/**
 * A time limit for one call. `AbortSignal.timeout` and `AbortSignal.any` would also work, but their objects live until
 * the time is over, however early the call ended: at a thousand calls a second that is tens of megabytes.
 */
export interface Limit {
  readonly signal: AbortSignal;
  readonly passed: boolean;
  /** The call has ended. */
  done(): void;
}

export function limitTo(ms: number, outer: AbortSignal | undefined): Limit {
  const controller = new AbortController();
  let passed = false;
  const timer = setTimeout(() => {
    passed = true;
    controller.abort(new Error(`no response within ${ms} ms`));
  }, ms);
  const follow = (): void => controller.abort(outer?.reason);
  if (outer?.aborted) follow();
  outer?.addEventListener('abort', follow, { once: true });
  return {
    signal: controller.signal,
    get passed() {
      return passed;
    },
    done: () => {
      clearTimeout(timer);
      outer?.removeEventListener('abort', follow);
    },
  };
}
