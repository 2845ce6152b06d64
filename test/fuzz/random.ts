/** Random numbers that follow from a seed: the same seed makes the same choices in the same order. */
export class Random {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = seeds.reduce((state, seed) => Math.imul(state ^ seed, 0x9e3779b1) + 0x7f4a7c15, 0x2545f491) >>> 0;
  }

  /** From 0 up to and without `below`. */
  int(below: number): number {
    // mulberry32
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  between(min: number, max: number): number {
    return min + this.int(max - min + 1);
  }

  /** One of them, or `undefined` of none. */
  of<T>(items: readonly T[]): T | undefined {
    return items[this.int(items.length)];
  }

  /** This many of them, or all. */
  some<T>(items: readonly T[], count: number): readonly T[] {
    const left = [...items];
    return Array.from({ length: Math.min(count, left.length) }, () => left.splice(this.int(left.length), 1)).flat();
  }

  /** One of them, each as often as its weight says. */
  weighted<T extends { readonly weight: number }>(items: readonly T[]): T {
    let left = this.int(items.reduce((sum, { weight }) => sum + weight, 0));
    const found = items.find(({ weight }) => (left -= weight) < 0);
    if (!found) throw new Error('there is nothing to choose from');
    return found;
  }
}
