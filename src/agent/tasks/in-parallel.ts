/** The work on each item, `width` at a time, in their order; after the first failure none is started. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const rest = items.entries();
  let failed = false;
  const worker = async (): Promise<void> => {
    for (const [index, item] of rest) {
      if (failed) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: width }, worker));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return results;
}
