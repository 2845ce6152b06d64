/**
 * Gives memory back when a burst of work is over. V8 keeps the heap of a burst for good unless it optimizes for size: 180 MiB
 * after a hundred new clusters instead of 107. While the burst lasts, that would cost half as much processor time again.
 */
import { setFlagsFromString } from 'node:v8';
import { type Clock, sleep } from './clock.ts';

/** The lists with which a process starts are no burst: what they leave behind is collected at once. */
const LOOK_MS = 5_000;
/** Collecting stops the event loop for some milliseconds: only when it has little to do. */
const IDLE = 0.2;
/** V8 waits for 8 s before each of up to three collections. */
const DELAY = '--gc-memory-reducer-start-delay-ms=2000';

/** The part of the time since the last call in which the event loop had something to do: 0 to 1. */
function utilization(): () => number {
  let before = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const since = performance.eventLoopUtilization(now, before);
    before = now;
    return since.utilization;
  };
}

/** Until the signal. */
export async function releaseIdleMemory(
  clock: Clock,
  signal: AbortSignal,
  busy = utilization(),
  setFlags = setFlagsFromString,
): Promise<void> {
  setFlags(DELAY);
  setFlags('--optimize-for-size');
  while (!signal.aborted) {
    await sleep(clock, LOOK_MS, signal);
    setFlags(busy() > IDLE ? '--no-optimize-for-size' : '--optimize-for-size');
  }
}
