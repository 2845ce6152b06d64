/** A semaphore: a limited number in parallel, or one alone. */
export class Turns {
  readonly #atOnce: number;
  readonly #waiting: { readonly weight: number; readonly go: () => void }[] = [];
  #taken = 0;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Plans that mostly wait weigh less. */
  take<T>(work: () => Promise<T>, weight = 1): Promise<T> {
    return this.#take(weight, work);
  }

  /** Nothing else runs meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#take(this.#atOnce, work);
  }

  async #take<T>(weight: number, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((go) => {
      this.#waiting.push({ weight, go });
      this.#next();
    });
    try {
      return await work();
    } finally {
      this.#taken -= weight;
      this.#next();
    }
  }

  /** In order of arrival. */
  #next(): void {
    for (let first = this.#waiting[0]; first && this.#taken + first.weight <= this.#atOnce; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#taken += first.weight;
      first.go();
    }
  }
}
