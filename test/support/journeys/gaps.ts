/** Which requests of clients failed or were late, and whether a hand-over of the leadership explains it. */
import type { Operation } from '../linearizability.ts';

/** Another member led at `toMs` than at `fromMs`. */
export interface HandOver {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Gap extends Operation {
  readonly lastedMs: number;
  readonly failed: boolean;
}

/** Failed ones last until the client began its next operation. */
export function gapsOf(history: readonly Operation[], lateMs: number): readonly Gap[] {
  return history.flatMap((operation) => {
    const { client, startMs, endMs } = operation;
    const next = history.find((other) => other.client === client && other.startMs > startMs);
    const lastedMs = (endMs ?? next?.startMs ?? startMs) - startMs;
    const failed = endMs === undefined;
    return failed || lastedMs > lateMs ? [{ ...operation, lastedMs, failed }] : [];
  });
}

/**
 * etcd drops proposals that are on their way while the leadership is transferred: each client may lose one request to each
 * hand-over that happened meanwhile. Returns all other failed or late ones.
 */
export function unexplained(gaps: readonly Gap[], handOvers: readonly HandOver[]): readonly Gap[] {
  const used = new Set<string>();
  return gaps.filter(({ client, startMs, lastedMs }) => {
    const at = handOvers.findIndex(
      ({ fromMs, toMs }, i) => startMs <= toMs && startMs + lastedMs >= fromMs && !used.has(`${client} ${i}`),
    );
    if (at >= 0) used.add(`${client} ${at}`);
    return at < 0;
  });
}

export const sentence = ({ client, does, key, startMs, lastedMs, failed }: Gap): string =>
  `client ${client}: ${does} of ${key} at ${Math.round(startMs)} ms ${failed ? 'failed after' : 'took'} ${Math.round(lastedMs)} ms`;
