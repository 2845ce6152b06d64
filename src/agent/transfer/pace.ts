/** A stream at no more than a given rate: background work leaves the network of the node to others. */
import { setTimeout as sleep } from 'node:timers/promises';
import { stopped } from './retry.ts';

/** Shorter waits are added up: a timer for each piece would cost more than it spares. */
const MIN_WAIT_MS = 50;

export async function* paced(
  body: AsyncIterable<Uint8Array>,
  bytesPerSecond: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const began = performance.now();
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    yield piece;
    const aheadMs = (1000 * bytes) / bytesPerSecond - (performance.now() - began);
    if (aheadMs < MIN_WAIT_MS) continue;
    await sleep(aheadMs, undefined, { signal }).catch(() => {
      throw stopped(signal);
    });
  }
}
