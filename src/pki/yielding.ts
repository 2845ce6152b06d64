/**
 * Runs the evaluation of tenants' Secrets in slices. It is synchronous and cannot await: the results of costly steps are cached, and a
 * slice that has taken too long throws `Pause`. The next slice runs the evaluation again from its start, after a turn of the event loop,
 * with the cached results. Pure: the time is an argument.
 */

/** Ends a slice. Only `attempt` catches it. */
class Pause extends Error {
  override readonly name = 'Pause';
}

export type Kept = Map<object | string, Map<string, unknown>>;

interface Slice {
  readonly kept: Kept;
  readonly isOver: () => boolean;
  /** A slice without a new result would be repeated for ever. */
  progress: boolean;
}

let slice: Slice | undefined;

/** The cached result of a step, by its input and its name; outside of a slice it is computed every time. */
export function costly<T>(about: object | string, step: string, compute: () => T): T {
  if (!slice) return compute();
  const results = slice.kept.get(about) ?? new Map<string, unknown>();
  slice.kept.set(about, results);
  if (results.has(step)) return results.get(step) as T;
  if (slice.progress && slice.isOver()) throw new Pause();
  const result = compute();
  results.set(step, result);
  slice.progress = true;
  return result;
}

/** One slice of the work; `undefined` when it is not done yet. */
export function attempt<T>(kept: Kept, isOver: () => boolean, work: () => T): { readonly value: T } | undefined {
  const outer = slice;
  slice = { kept, isOver, progress: false };
  try {
    return { value: work() };
  } catch (error) {
    if (error instanceof Pause) return undefined;
    throw error;
  } finally {
    slice = outer;
  }
}
