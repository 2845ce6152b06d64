/**
 * Gives memory back when a burst of work is over. V8 grows its heap while there is much to do, and collects what is left only
 * when there is much to do again; the C library keeps what was freed in between. An operator that has made a hundred clusters
 * would stand at twice of what it needs for days.
 */
import { dlopen } from 'node:ffi';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Clock, sleep } from './clock.ts';

export interface Memory {
  /** Bytes that are taken now, and that were after the last collection. */
  taken(): number;
  needed(): number;
  /** How much of the time since the last question the loop had something to do: 0 to 1. */
  busy(): number;
  collect(): Promise<unknown>;
}

const LOOK_MS = 5_000;
/** Collecting stops everything for some milliseconds: only where nobody is there to wait for it. */
const QUIET = 0.2;
const WORTH_BYTES = 12 * 1024 ** 2;
/** The same garbage is not looked for again and again. */
const PAUSE_LOOKS = 12;

/** Until the signal. */
export async function beThrifty(memory: Memory, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let pause = 0; !signal.aborted; pause--) {
    await sleep(clock, LOOK_MS, signal);
    const [more, busy] = [memory.taken() - memory.needed(), memory.busy()];
    if (signal.aborted || pause > 0 || busy > QUIET || more < WORTH_BYTES) continue;
    await memory.collect();
    pause = PAUSE_LOOKS;
  }
}

export function processMemory(): Memory {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: object) => Promise<unknown>;
  const trim = trimmer();
  let before = performance.eventLoopUtilization();
  let needed = 0;
  return {
    taken: () => process.memoryUsage.rss(),
    needed: () => needed,
    busy: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    collect: async () => {
      let before: number;
      do {
        before = process.memoryUsage.rss();
        await collect({ type: 'major', execution: 'async', flavor: 'last-resort' });
        await setImmediate(); // what belonged to collected objects is freed after them
        trim();
        needed = process.memoryUsage.rss();
      } while (before - needed >= WORTH_BYTES); // pages that one collection leaves empty are given back by the next
    },
  };
}

/** glibc has it, and it halves an operator that has just looked at six hundred clusters. Elsewhere nothing is done. */
function trimmer(): () => void {
  try {
    const { functions } = dlopen(null, { malloc_trim: { arguments: ['uint64'], return: 'int32' } });
    return () => void functions.malloc_trim(0n);
  } catch {
    return () => undefined;
  }
}
