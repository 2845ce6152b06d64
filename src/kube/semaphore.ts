/** Runs at most N tasks at a time; later ones wait, in the order of arrival. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(atATime: number) {
    this.#free = atATime;
  }

  /** Rejects without starting the task when the signal aborts first. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#pass();
    }
  }

  async #turn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.delete(begin);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiting.add(begin);
    });
  }

  /** A slot that becomes free passes to the first waiter: a task that arrives just now cannot overtake it. */
  #pass(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
