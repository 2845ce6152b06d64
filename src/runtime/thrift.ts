/**
 * Gives memory back when a burst of work is over. V8 grows its heap while there is much to do, and collects what is left only
 * when there is much to do again: an operator that has made a hundred clusters would stand at twice of what it needs for days.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Clock, sleep } from './clock.ts';

export interface Heap {
  /** Bytes that are taken, and those of them that are in use or were at the last collection. */
  taken(): number;
  used(): number;
  /** How much of the time since the last question the loop had something to do: 0 to 1. */
  busy(): number;
  collect(): Promise<unknown>;
}

const LOOK_MS = 10_000;
/** Collecting stops everything for some milliseconds: only where nobody is there to wait for it. */
const QUIET = 0.2;
const WASTEFUL = 1.3;
const WORTH_BYTES = 8 * 1024 ** 2;
/** The same garbage is not looked for again and again. */
const PAUSE_LOOKS = 6;

/** Until the signal. */
export async function beThrifty(heap: Heap, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let pause = 0; !signal.aborted; pause--) {
    await sleep(clock, LOOK_MS, signal);
    const [taken, floor, busy] = [heap.taken(), heap.used(), heap.busy()];
    if (signal.aborted || pause > 0 || busy > QUIET) continue;
    if (taken < floor * WASTEFUL || taken - floor < WORTH_BYTES) continue;
    await heap.collect();
    pause = PAUSE_LOOKS;
  }
}

export function processHeap(): Heap {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: object) => Promise<unknown>;
  let before = performance.eventLoopUtilization();
  let floor = 0;
  return {
    taken: () => process.memoryUsage().heapTotal,
    used: () => floor,
    busy: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    collect: async () => {
      await collect({ type: 'major', execution: 'async', flavor: 'last-resort' });
      floor = process.memoryUsage().heapTotal;
    },
  };
}
