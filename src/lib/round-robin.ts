/** Entries by key, taken in turns from their groups: a group with thousands of entries does not delay the others. */
export class RoundRobin<T> {
  /** Groups in the order of their turns; the entries of a group in the order of their arrival. */
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #groupOf: (key: string) => string;
  #size = 0;

  constructor(groupOf: (key: string) => string) {
    this.#groupOf = groupOf;
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): T | undefined {
    return this.#groups.get(this.#groupOf(key))?.get(key);
  }

  /** An entry that is set again keeps its place. */
  set(key: string, value: T): void {
    const name = this.#groupOf(key);
    const group = this.#groups.get(name) ?? new Map<string, T>();
    if (!group.has(key)) this.#size++;
    group.set(key, value);
    this.#groups.set(name, group);
  }

  delete(key: string): void {
    const name = this.#groupOf(key);
    const group = this.#groups.get(name);
    if (!group?.delete(key)) return;
    this.#size--;
    if (group.size === 0) this.#groups.delete(name);
  }

  clear(): void {
    this.#groups.clear();
    this.#size = 0;
  }

  /** The first entry that may be taken, of the first group that may be taken from: that group has its next turn after all others. */
  take(
    mayTake: (key: string) => boolean = () => true,
    mayTakeFrom: (group: string) => boolean = () => true,
  ): { readonly key: string; readonly value: T } | undefined {
    for (const [name, group] of this.#groups) {
      if (!mayTakeFrom(name)) continue;
      for (const [key, value] of group) {
        if (!mayTake(key)) continue;
        this.delete(key);
        if (this.#groups.delete(name)) this.#groups.set(name, group);
        return { key, value };
      }
    }
    return undefined;
  }

  /** Removes the oldest entry of the largest group, and returns the name of that group. */
  dropFromLargest(): string | undefined {
    const [name, group] = [...this.#groups].reduce(
      (a, b) => (b[1].size > a[1].size ? b : a),
      ['', new Map<string, T>()],
    );
    const oldest = group.keys().next();
    if (oldest.done) return undefined;
    this.delete(oldest.value);
    return name;
  }
}
