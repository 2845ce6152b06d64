/** What did you mean? The known word that is the fewest keystrokes away, if it is near at all. */

function distance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = (above[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    above = current;
  }
  return above[b.length] ?? 0;
}

export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const longer = known.find((candidate) => lower.length >= 2 && candidate.startsWith(lower));
  if (longer) return longer;
  const ranked = known.map((candidate) => ({ candidate, far: distance(lower, candidate) }));
  const best = ranked.toSorted((a, b) => a.far - b.far)[0];
  return best && best.far <= Math.max(1, Math.floor(best.candidate.length / 2)) ? best.candidate : undefined;
}
