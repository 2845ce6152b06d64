/**
 * Costly steps over what tenants have written, in pieces. Judgements are synchronous and cannot wait: the results of their costly
 * steps are kept, and a piece that has taken long enough ends with `Pause`. The next piece starts the judgement over after a turn
 * of the event loop, and finds what the earlier ones have computed. Pure: the time comes in.
 */

/** Ends a piece. Only `attempt` catches it. */
class Pause extends Error {
  override readonly name = 'Pause';
}

export type Kept = Map<object | string, Map<string, unknown>>;

interface Piece {
  readonly kept: Kept;
  readonly isOver: () => boolean;
  /** A piece without a new result would be repeated for ever. */
  progress: boolean;
}

let piece: Piece | undefined;

/** The result of a step, by what it is about and which step it is; outside of a piece it is computed every time. */
export function costly<T>(about: object | string, step: string, compute: () => T): T {
  if (!piece) return compute();
  const results = piece.kept.get(about) ?? new Map<string, unknown>();
  piece.kept.set(about, results);
  if (results.has(step)) return results.get(step) as T;
  if (piece.progress && piece.isOver()) throw new Pause();
  const result = compute();
  results.set(step, result);
  piece.progress = true;
  return result;
}

/** One piece of the work; `undefined` when it is not done yet. */
export function attempt<T>(kept: Kept, isOver: () => boolean, work: () => T): { readonly value: T } | undefined {
  const outer = piece;
  piece = { kept, isOver, progress: false };
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof Pause) return undefined;
    throw error;
  } finally {
    piece = outer;
  }
}
