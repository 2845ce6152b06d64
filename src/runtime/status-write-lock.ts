/**
 * Two controllers write to one object: the one whose it is, its status; another one, a field of it. A status that was made
 * before the other's change could only be refused: so the other waits for a status that is on its way, and no status is sent
 * until the cache has the other's change.
 */
export class Claims {
  readonly #changing = new Map<string, number>();
  readonly #telling = new Map<string, Promise<unknown>>();

  /** Whether another controller changes the object, or has and the cache does not know it yet. */
  holds(object: string): boolean {
    return this.#changing.has(object);
  }

  /** A status on its way. */
  async telling<T>(object: string, write: () => Promise<T>): Promise<T> {
    const written = write();
    this.#telling.set(object, written);
    try {
      return await written;
    } finally {
      this.#telling.delete(object);
    }
  }

  /** The change of another controller. `cached` resolves when the cache has it. */
  async changing<T>(object: string, write: () => Promise<T>, cached: (written: T) => Promise<unknown>): Promise<T> {
    this.#changing.set(object, (this.#changing.get(object) ?? 0) + 1);
    try {
      await this.#telling.get(object)?.catch(() => undefined);
      const written = await write();
      void cached(written).then(
        () => this.#release(object),
        () => this.#release(object),
      );
      return written;
    } catch (error) {
      this.#release(object);
      throw error;
    }
  }

  #release(object: string): void {
    const left = (this.#changing.get(object) ?? 1) - 1;
    if (left > 0) this.#changing.set(object, left);
    else this.#changing.delete(object);
  }
}

export const claimOf = (kind: string, key: string): string => `${kind} ${key}`;
